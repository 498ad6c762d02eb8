// Inert texts: texts from outside, made harmless for a terminal: no other place decides which
// characters are harmless.
#pragma once

#include <string>
#include <string_view>

namespace pulse {

enum class Lines { joined, kept };

// The text without anything that a terminal acts on. A control character, a character that changes
// the direction of the text or is invisible, and a byte outside of UTF-8 stand there as \n, \x1b or
// \u{202e}. Lines::kept leaves newlines.
std::string inert(std::string_view text, Lines lines = Lines::joined);

// The same of a JSON document. The result has the same values: harmful characters stand in strings
// as \u202e, and a byte outside of UTF-8 as \ufffd.
std::string inert_json(std::string_view document);

// Returns the text; of a text of nothing but blanks each blank is spelled, as \x20 or \u{3000},
// because a reader takes a name of blanks for no name.
std::string visible(std::string_view text);

}  // namespace pulse
