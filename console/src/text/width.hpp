// How many columns inert text takes on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pulse::console {

// In columns; a character of East Asia or an emoji has two, a combining one none.
std::size_t width(std::string_view text);

// The text in at most `columns`, one column at least; a cut text ends with an ellipsis.
std::string fit(std::string_view text, std::size_t columns);

// `text` with spaces after or before, up to `columns`.
std::string pad(std::string text, std::size_t columns);
std::string pad_before(const std::string& text, std::size_t columns);

}  // namespace pulse::console
