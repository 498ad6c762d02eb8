// Trusted files: files of the operator that steer the worker.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <variant>

namespace pulse {

struct FileText {
  std::string text;
};

// Why a file was not read: the fault, with the path.
struct FileRefusal {
  std::string reason;
  bool is_transient = false;  // out of descriptors or memory: a later try may succeed
};

// The path of the file opened as `fd`, with links resolved; `path` where the links cannot be
// resolved.
std::string resolved_path(int fd, const std::string& path);

// Who may write here decides which code this process runs: only root and the process's own user
// may. Otherwise the fault, with the path.
std::optional<std::string> why_not_trusted(const struct stat& status, const std::string& path);

// The text of a regular file of at most 1 MB that root or the process's own user owns, and that no
// other user may write or replace; else the fault, with the path.
std::variant<FileText, std::string> read_trusted_file(const std::string& path);
// The same for a reader that tries again.
std::variant<FileText, FileRefusal> try_trusted_file(const std::string& path);

}  // namespace pulse
