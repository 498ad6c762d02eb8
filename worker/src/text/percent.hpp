// Percent-encoding, as addresses and forms of HTML have it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pulse {

// The text that is encoded; in a form a plus is a blank. Nothing for a bad escape, and for what
// PostgreSQL could not store as a text.
std::optional<std::string> percent_decoded(std::string_view text, bool is_plus_a_blank);

// What is safe as a value of a query or a part of a path.
std::string percent_encoded(std::string_view text);

}  // namespace pulse
