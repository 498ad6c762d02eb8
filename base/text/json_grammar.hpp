// JSON grammar: JSON in PostgreSQL's sense: by the grammar alone, so that numbers have any size,
// and \u0000 or half a pair of surrogates may stand in a string.
#pragma once

#include <string_view>

namespace pulse {

bool is_json(std::string_view text);

}  // namespace pulse
