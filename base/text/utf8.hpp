// UTF-8: the part of UTF-8 that the worker needs to judge and cut text from outside.
#pragma once

#include <cstddef>
#include <string_view>

namespace pulse {

// The length in bytes of the well-formed character `text` begins with; 0 when `text` begins with
// none. Overlong forms, surrogates and code points beyond U+10FFFF are not well-formed.
std::size_t utf8_character_length(std::string_view text) noexcept;

// Whether PostgreSQL can store this as a text: every character is well-formed, and none is NUL.
bool is_storable(std::string_view text) noexcept;

// The longest prefix of well-formed `text` with at most `limit` bytes that ends no character in the
// middle.
std::string_view utf8_prefix(std::string_view text, std::size_t limit) noexcept;

// The longest suffix, likewise.
std::string_view utf8_suffix(std::string_view text, std::size_t limit) noexcept;

}  // namespace pulse
