#include "task/executable/tasks_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "base/text/exhaustion.hpp"
#include "base/text/trusted_file.hpp"
#include "base/text/utf8.hpp"

namespace pulse {
namespace {

using Kind = TaskRefusal::Kind;

// A folder of tasks is flat or nearly so; a deeper tree is a mistake, not to be walked for ever.
constexpr int kMaxListedDepth = 8;

struct DirectoryCloser {
  void operator()(DIR* directory) const noexcept { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, DirectoryCloser>;

std::string describe(int error) { return std::generic_category().message(error); }

void refuse(TaskRefusal& refusal, Kind kind, std::string reason) {
  refusal = {kind, std::move(reason)};
}

// Opens one component beneath `directory`, as a place only: nothing is read, no device is touched,
// no FIFO blocks, and a file that may be executed but not read is fine. Of a link the link itself
// is opened, and refused. Not by openat2, which a service with RestrictSUIDSGID may not call.
UniqueFd open_beneath(int directory, const std::string& name, bool is_folder) noexcept {
  UniqueFd fd(openat(directory, name.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return fd;
  struct stat status {};
  int error = 0;
  if (fstat(fd.get(), &status) != 0) {
    error = errno;
  } else if (S_ISLNK(status.st_mode)) {
    error = ELOOP;
  } else if (is_folder && !S_ISDIR(status.st_mode)) {
    error = ENOTDIR;
  }
  if (error == 0) return fd;
  fd.reset();
  errno = error;
  return fd;
}

// `what` says what the system could not do.
TaskRefusal failed(const std::string& what, int error) {
  return {is_exhaustion(error) ? Kind::exhausted : Kind::unavailable,
          "cannot " + what + ": " + describe(error)};
}

void refuse_unopened(TaskRefusal& refusal, const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return refuse(refusal, Kind::not_found, path + " does not exist");
    case ENAMETOOLONG: return refuse(refusal, Kind::bad_name, path + " is too long a name");
    case ELOOP: return refuse(refusal, Kind::unsafe, path + " is a symbolic link");
    default: refusal = failed("open " + path, error);
  }
}

bool is_guarded(const struct stat& status, const std::string& path, TaskRefusal& refusal) {
  auto problem = why_not_trusted(status, path);
  if (problem) refuse(refusal, Kind::unsafe, std::move(*problem));
  return !problem;
}

bool is_guarded_directory(int fd, const std::string& path, TaskRefusal& refusal) {
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    refusal = failed("check " + path, errno);
    return false;
  }
  return is_guarded(status, path, refusal);
}

bool is_runnable_file(int fd, const std::string& path, TaskRefusal& refusal) {
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    refusal = failed("check " + path, errno);
    return false;
  }
  if (!S_ISREG(status.st_mode)) {
    refuse(refusal, Kind::not_executable, path + " is not a regular file");
    return false;
  }
  if (faccessat(fd, "", X_OK, AT_EACCESS | AT_EMPTY_PATH) != 0) {
    refuse(refusal, Kind::not_executable, path + " is not executable");
    return false;
  }
  if ((status.st_mode & (S_ISUID | S_ISGID)) != 0) {
    refuse(refusal, Kind::unsafe, path + " is set-user-id or set-group-id");
    return false;
  }
  return is_guarded(status, path, refusal);
}

UniqueFd duplicate(int fd) noexcept { return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

// A refusal for want of descriptors or memory says nothing about the entry: the entry may be a
// task, and the whole list is of no use.
void note_refusal(TaskRefusal refusal, TasksFolder::Listing& listing) {
  if (!refusal.is_transient()) return listing.refusals.push_back(std::move(refusal));
  if (!listing.failure) listing.failure = std::move(refusal);
}

void collect(const TasksFolder& folder, int directory, const std::string& prefix, int depth,
             TasksFolder::Listing& listing);

void collect_entry(const TasksFolder& folder, int directory, const std::string& prefix,
                   const std::string& name, int depth, TasksFolder::Listing& listing) {
  const std::string identifier = prefix + name;
  const std::string path = folder.path() + '/' + identifier;
  struct stat status {};
  TaskRefusal refusal;
  if (fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno != ENOENT) note_refusal(failed("check " + path, errno), listing);
  } else if (S_ISDIR(status.st_mode)) {
    if (depth >= kMaxListedDepth) return;
    const UniqueFd below = open_beneath(directory, name, true);
    if (below.valid()) return collect(folder, below.get(), identifier + '/', depth + 1, listing);
    refuse_unopened(refusal, path, errno);
    if (refusal.kind != Kind::not_found) note_refusal(std::move(refusal), listing);
  } else if (!TasksFolder::is_valid_name(identifier)) {
    note_refusal({Kind::bad_name, path + " has a name that no task can have"}, listing);
  } else if (folder.find(identifier, refusal)) {
    listing.identifiers.push_back(identifier);
  } else if (refusal.kind == Kind::not_executable && S_ISREG(status.st_mode)) {
    listing.not_executable.push_back(identifier);
  } else if (refusal.kind != Kind::not_executable && refusal.kind != Kind::not_found) {
    note_refusal(std::move(refusal), listing);
  }
}

// Collects the identifiers beneath `directory`; `prefix` is the path of `directory` within the
// folder.
void collect(const TasksFolder& folder, int directory, const std::string& prefix, int depth,
             TasksFolder::Listing& listing) {
  UniqueFd readable(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Directory entries(readable.valid() ? fdopendir(readable.get()) : nullptr);
  const auto refuse_folder = [&](int error) {
    TaskRefusal refusal = failed("read " + folder.path() + '/' + prefix, error);
    if (!prefix.empty() || listing.failure) return note_refusal(std::move(refusal), listing);
    listing.failure = std::move(refusal);  // of the whole folder
  };
  if (entries == nullptr) return refuse_folder(errno);
  readable.release();  // closed with `entries`
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (!name.starts_with('.')) collect_entry(folder, directory, prefix, name, depth, listing);
  }
  if (errno != 0) refuse_folder(errno);
}

}  // namespace

TasksFolder::TasksFolder(UniqueFd fd, std::string path) noexcept
    : fd_(std::move(fd)), path_(std::move(path)) {}

std::optional<TasksFolder> TasksFolder::open(const std::string& path, TaskRefusal& refusal) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() && errno == ENOTDIR) {
    refuse(refusal, Kind::unavailable, "the tasks folder " + path + " is not a folder");
    return std::nullopt;
  }
  if (!fd.valid()) {
    refuse_unopened(refusal, "the tasks folder " + path, errno);
    return std::nullopt;
  }
  std::string resolved = resolved_path(fd.get(), path);
  if (!is_guarded_directory(fd.get(), "the tasks folder " + resolved, refusal)) {
    return std::nullopt;
  }
  // Asked here once, so that a folder that cannot be searched is told at the start, not by every
  // job.
  if (!open_beneath(fd.get(), ".", true).valid()) {
    refuse_unopened(refusal, "the tasks folder " + resolved, errno);
    return std::nullopt;
  }
  return TasksFolder(std::move(fd), std::move(resolved));
}

bool TasksFolder::is_valid_name(std::string_view identifier) noexcept {
  std::size_t characters = 0;
  bool begins_component = true;
  for (std::string_view rest = identifier; !rest.empty(); ++characters) {
    const std::size_t length = utf8_character_length(rest);
    const auto first = static_cast<unsigned char>(rest.front());
    if (length == 0 || first < 0x20 || first == 0x7F || first == '\\') return false;
    if (length == 2 && first == 0xC2 && static_cast<unsigned char>(rest[1]) < 0xA0) return false;
    if (begins_component && (first == '/' || first == '.')) return false;
    begins_component = first == '/';
    rest.remove_prefix(length);
  }
  return characters > 0 && characters <= kMaxNameLength && !begins_component;
}

std::optional<Executable> TasksFolder::find(std::string_view identifier,
                                            TaskRefusal& refusal) const {
  if (!is_valid_name(identifier)) {
    refuse(refusal, Kind::bad_name, "the identifier is not a name for a task file");
    return std::nullopt;
  }
  Executable executable;
  executable.path = path_;
  executable.directory = duplicate(fd_.get());
  executable.folder = duplicate(fd_.get());
  if (!executable.directory.valid() || !executable.folder.valid()) {
    refuse_unopened(refusal, path_, errno);
    return std::nullopt;
  }
  for (std::size_t slash = 0; (slash = identifier.find('/')) != std::string_view::npos;
       identifier.remove_prefix(slash + 1)) {
    const std::string name(identifier.substr(0, slash));
    executable.path += '/' + name;
    UniqueFd below = open_beneath(executable.directory.get(), name, true);
    if (!below.valid()) {
      refuse_unopened(refusal, executable.path, errno);
      return std::nullopt;
    }
    if (!is_guarded_directory(below.get(), executable.path, refusal)) return std::nullopt;
    executable.directory = std::move(below);
  }
  const std::string name(identifier);
  executable.path += '/' + name;
  executable.file = open_beneath(executable.directory.get(), name, false);
  if (!executable.file.valid()) {
    refuse_unopened(refusal, executable.path, errno);
    return std::nullopt;
  }
  if (!is_runnable_file(executable.file.get(), executable.path, refusal)) return std::nullopt;
  return executable;
}

TasksFolder::Listing TasksFolder::list() const {
  Listing listing;
  collect(*this, fd_.get(), "", 0, listing);
  std::sort(listing.identifiers.begin(), listing.identifiers.end());
  std::sort(listing.not_executable.begin(), listing.not_executable.end());
  return listing;
}

}  // namespace pulse
