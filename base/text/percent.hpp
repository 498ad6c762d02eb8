// Percent-encoding, as in addresses and in forms of HTML.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pulse {

// The decoded text; in a form a plus is a blank. Nothing for a bad escape, and for a text that
// PostgreSQL could not store.
std::optional<std::string> percent_decoded(std::string_view text, bool is_plus_a_blank);

// The text as a value of a query or a part of a path.
std::string percent_encoded(std::string_view text);

}  // namespace pulse
