// Random secrets, and what is kept of them.
#pragma once

#include <string>
#include <string_view>

namespace pulse::console {

// 256 random bits in hexadecimal digits; throws std::runtime_error where there are none to be had.
std::string random_secret();

// SHA-256 in lower-case hexadecimal digits. What it is of has 256 random bits, so a slow hash would
// protect nothing more.
std::string sha256(std::string_view text);

// Takes the same time wherever the texts differ.
bool are_same(std::string_view one, std::string_view other);

}  // namespace pulse::console
