// A JSON document laid out for a reader.
#pragma once

#include <string>
#include <string_view>

namespace pulse::console {

// Puts each member and element of a document on a line of its own, two columns deeper than the
// surrounding value. Only white space between tokens changes: texts and numbers keep each letter.
// The document may be cut anywhere. A document deeper than 64 levels is indented as at the 64th
// level.
std::string laid_out_json(std::string_view document);

}  // namespace pulse::console
