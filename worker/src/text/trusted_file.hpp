// Files of the operator that decide what the worker does.
#pragma once

#include <string>
#include <variant>

namespace pulse {

struct FileText {
  std::string text;
};

// The text of a regular file that only its owner may write, of at most 1 MB; else what is wrong,
// with the path.
std::variant<FileText, std::string> read_trusted_file(const std::string& path);

}  // namespace pulse
