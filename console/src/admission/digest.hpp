// Random secrets, and their hashes.
#pragma once

#include <string>
#include <string_view>

namespace pulse::console {

// 256 random bits in hexadecimal digits; throws std::runtime_error where the system has none.
std::string random_secret();

// SHA-256 in lower-case hexadecimal digits. Secrets have 256 random bits, so a slow hash would not
// protect them better.
std::string sha256(std::string_view text);

// Takes the same time wherever the texts differ.
bool are_same(std::string_view one, std::string_view other);

}  // namespace pulse::console
