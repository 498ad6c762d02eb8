// Writing JSON without a tree, where it is written for every job.
#pragma once

#include <string>
#include <string_view>

namespace pulse {

// Appends a JSON string; what is no UTF-8 in it becomes U+FFFD.
void append_json_string(std::string& text, std::string_view value);

}  // namespace pulse
