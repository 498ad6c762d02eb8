// Standard streams: standard input, output and error of a process that was started without them.
#pragma once

namespace pulse {

// Opens a stand-in for each closed stream. Without a stand-in the first file or connection opened
// gets the number of the stream, and prints go there. A stand-in fails as a closed stream would:
// reading from standard input fails, and so does writing to an output. Call before anything is
// opened.
void open_standard_streams();

// Whether a stand-in, or a file opened for reading, stands for this output.
bool is_output_closed(int descriptor);

}  // namespace pulse
