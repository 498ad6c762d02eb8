// The line of an error that tells most.
#pragma once

#include <string>
#include <string_view>

namespace pulse::console {

// Returns the last line that is neither blank nor indented: the end of a traceback of Python, and
// the message or the last cause above the frames of Java, Node and Ruby. Of an error whose lines
// are all indented the last line.
std::string telling_line(std::string_view error);

}  // namespace pulse::console
