// JSON text: writes JSON without a tree, because the worker writes JSON for every job.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pulse {

// Appends a JSON string; bytes outside of UTF-8 become U+FFFD.
void append_json_string(std::string& text, std::string_view value);

// The largest document that the server stores.
constexpr std::size_t kMaxDocumentBytes = std::size_t{64} * 1024 * 1024;

// Why `text` cannot be stored as a document; nothing if `text` can. A refusal by the server would
// hit all outcomes of the same statement, and the server would log the document.
std::optional<std::string> document_problem(std::string_view text);

}  // namespace pulse
