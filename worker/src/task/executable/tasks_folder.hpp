// Tasks folder: the executables of a folder, and how a name is resolved safely.
//
// The folder is opened once. A name is resolved beneath that descriptor one component at a time,
// and no component is a link, `.` or `..`, so no name can lead out of the folder. A folder that is
// renamed or replaced later stays the folder that was checked. The folder, each sub-folder on the
// way and the file must be owned by root or by the user of this process and be writable by that
// owner only: a user that may write there decides which code this process runs. Set-user-id and
// set-group-id files are refused.
//
// Any thread may call; the object is constant after open().

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop/unique_fd.hpp"

namespace pulse {

// Why a folder or a name is not served. `reason` is a sentence for the operator and for last_error.
struct TaskRefusal {
  enum class Kind {
    bad_name,        // empty, too long, `..`, leading `/`, control character, backslash, hidden
    not_found,       // nothing of that name
    not_executable,  // a file without execute permission, or not a regular file
    unsafe,          // a symlink, set-user-id, a wrong owner, or writable by another user
    exhausted,       // out of descriptors or memory: says nothing about the task; try later
    unavailable,     // the system could not say (I/O error, no permission)
  };
  Kind kind = Kind::unavailable;
  std::string reason;

  // The job is to be released: neither the job nor the task is at fault.
  [[nodiscard]] bool is_transient() const noexcept { return kind == Kind::exhausted; }
};

// One file that passed every check, held by descriptors (O_PATH, close-on-exec).
struct Executable {
  UniqueFd file;       // the file itself: its identity
  UniqueFd directory;  // the folder that holds the file: the minder resolves the name from here
  UniqueFd folder;     // the tasks folder: the working directory of the task
  std::string path;    // for people: the folder's path and the name
};

class TasksFolder {
 public:
  // Longest name in characters (code points).
  static constexpr std::size_t kMaxNameLength = 128;

  // Opens and checks the folder; on a refusal returns nothing and fills `refusal`.
  static std::optional<TasksFolder> open(const std::string& path, TaskRefusal& refusal);

  // Resolves one identifier; on a refusal returns nothing and fills `refusal`.
  std::optional<Executable> find(std::string_view identifier, TaskRefusal& refusal) const;

  struct Listing {
    std::vector<std::string> identifiers;     // sorted; find() accepts each identifier
    std::vector<std::string> not_executable;  // sorted; files that only lack the permission
    std::vector<TaskRefusal> refusals;        // executables that are not served, and why
    // Why the list says nothing: the folder could not be read, or the machine had no descriptor or
    // memory for an entry.
    std::optional<TaskRefusal> failure;
  };
  // The tasks served now. Sub-folders give `sub/name`; hidden entries are passed over.
  [[nodiscard]] Listing list() const;

  // The folder's path with links resolved, at the time of opening.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  // The names of tasks that the server takes, but for components that begin with a dot: 1 to 128
  // characters of valid UTF-8 without control characters and backslashes, no leading `/`, and no
  // empty component.
  static bool is_valid_name(std::string_view identifier) noexcept;

 private:
  TasksFolder(UniqueFd fd, std::string path) noexcept;

  UniqueFd fd_;
  std::string path_;
};

}  // namespace pulse
