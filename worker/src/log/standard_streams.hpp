// Standard input, output and error of a process that was started without them.
#pragma once

namespace pulse {

// Else the first file or connection that is opened gets their number, and what is printed goes
// there. The stand-in for one that is closed fails as that would: nothing can be read from it,
// nothing is taken by it. Before anything is opened.
void open_standard_streams();

// Whether such a stand-in, or a file opened for reading, stands for this output.
bool is_output_closed(int descriptor);

}  // namespace pulse
