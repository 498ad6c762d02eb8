// Writing JSON without a tree, where it is written for every job.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pulse {

// Appends a JSON string; what is no UTF-8 in it becomes U+FFFD.
void append_json_string(std::string& text, std::string_view value);

// What the server stores at most as one document.
constexpr std::size_t kMaxDocumentBytes = std::size_t{64} * 1024 * 1024;

// Why `text` cannot be stored as a document, if it cannot. A refusal of the server would meet all
// that travels with it, and would be written to its log.
std::optional<std::string> document_problem(std::string_view text);

}  // namespace pulse
