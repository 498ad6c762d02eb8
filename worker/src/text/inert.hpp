// Texts from outside, made harmless for a terminal: the one place where that is decided.
#pragma once

#include <string>
#include <string_view>

namespace pulse {

enum class Lines { joined, kept };

// The text without anything that a terminal acts on. A control character, a character that turns
// the direction of what follows or is invisible, and a byte that is no UTF-8 stand there as \n,
// \x1b or \u{202e}. Lines::kept leaves newlines as they are.
std::string inert(std::string_view text, Lines lines = Lines::joined);

// The same of a JSON document, which stays one of the same values: those characters stand in its
// strings as \u202e, and a byte that is no UTF-8 as \ufffd.
std::string inert_json(std::string_view document);

}  // namespace pulse
