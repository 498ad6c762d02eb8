// Random secrets, their hashes, and codes that only the owner of a key can make.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace pulse::console {

// In lower-case digits; bytes_of() returns nothing for a text of other characters.
std::string hexadecimal(std::string_view bytes);
std::optional<std::string> bytes_of(std::string_view hexadecimal);

// Throws std::runtime_error where the system has no random numbers.
std::string random_bytes(std::size_t count);
// 256 random bits in hexadecimal digits.
std::string random_secret();

// SHA-256 in lower-case hexadecimal digits. Secrets have 256 random bits, so a slow hash would not
// protect them better.
std::string sha256(std::string_view text);

// HMAC-SHA-256: 32 bytes.
std::string authentication_code(std::string_view key, std::string_view text);

// Takes the same time wherever the texts differ.
bool are_same(std::string_view one, std::string_view other);

}  // namespace pulse::console
