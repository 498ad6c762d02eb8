// Files of the operator that decide what the worker does.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <variant>

namespace pulse {

struct FileText {
  std::string text;
};

// Where the links of a path lead to that was opened as `fd`; the path where that cannot be told.
std::string resolved_path(int fd, const std::string& path);

// Who may write here decides what this process does: root and the process's own user alone may.
// Otherwise what is wrong, with the path.
std::optional<std::string> why_not_trusted(const struct stat& status, const std::string& path);

// The text of a regular file of at most 1 MB, which root or the process's own user has, and which
// nobody else may write or put another file in the place of; else what is wrong, with the path.
std::variant<FileText, std::string> read_trusted_file(const std::string& path);

}  // namespace pulse
