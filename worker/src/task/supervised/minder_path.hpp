// Where pulse-minder is installed.
#pragma once

#include <string>

namespace pulse {

// The path of pulse-minder: PULSE_MINDER, else beside this program, else in ../libexec/pg_pulse,
// else the place of installation. Empty if no file there can be executed.
std::string find_minder();

}  // namespace pulse
