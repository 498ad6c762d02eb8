// The little of UTF-8 that is needed to judge and cut text from outside.
#pragma once

#include <cstddef>
#include <string_view>

namespace pulse {

// The length in bytes of the well-formed character `text` begins with; 0 when it begins with none.
// Overlong forms, surrogates and what lies beyond U+10FFFF are not well-formed.
std::size_t utf8_character_length(std::string_view text) noexcept;

// Whether PostgreSQL can store this as a text: all of it is well-formed, and no NUL is in it.
bool is_storable(std::string_view text) noexcept;

// The longest prefix of well-formed `text` that has at most `limit` bytes and ends no character
// in the middle.
std::string_view utf8_prefix(std::string_view text, std::size_t limit) noexcept;

// The longest suffix, likewise.
std::string_view utf8_suffix(std::string_view text, std::size_t limit) noexcept;

}  // namespace pulse
