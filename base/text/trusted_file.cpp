#include "base/text/trusted_file.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/text/exhaustion.hpp"

namespace pulse {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1024} * 1024;

FileRefusal unreadable(const std::string& path, int error) {
  return {"cannot read " + path + ": " + std::generic_category().message(error),
          is_exhaustion(error)};
}

// In a sticky folder no user takes the files of other users, and in a folder mounted for reading no
// user takes any file: so Kubernetes gives files to containers.
std::optional<FileRefusal> why_folder_not_trusted(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  struct stat status {};
  struct statvfs mount {};
  if (stat(folder.c_str(), &status) != 0 || statvfs(folder.c_str(), &mount) != 0) {
    return unreadable(folder, errno);
  }
  if ((mount.f_flag & ST_RDONLY) != 0) return std::nullopt;
  if ((status.st_mode & S_ISVTX) != 0) status.st_mode &= ~static_cast<mode_t>(S_IWGRP | S_IWOTH);
  if (auto problem = why_not_trusted(status, folder)) return FileRefusal{std::move(*problem)};
  return std::nullopt;
}

}  // namespace

std::string resolved_path(int fd, const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = readlink(link.c_str(), target.data(), target.size());
  return length <= 0 ? path : std::string(target.data(), static_cast<std::size_t>(length));
}

std::optional<std::string> why_not_trusted(const struct stat& status, const std::string& path) {
  if (status.st_uid != 0 && status.st_uid != geteuid()) {
    return path + " is owned by user " + std::to_string(status.st_uid) +
           ", neither by root nor by the user of this process";
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return std::nullopt;
  return path + " may be written by " +
         ((status.st_mode & S_IWOTH) != 0 ? "everybody" : "its group") +
         "; take it away with chmod go-w";
}

std::variant<FileText, std::string> read_trusted_file(const std::string& path) {
  auto read = try_trusted_file(path);
  if (auto* refusal = std::get_if<FileRefusal>(&read)) return std::move(refusal->reason);
  return std::get<FileText>(std::move(read));
}

std::variant<FileText, FileRefusal> try_trusted_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return unreadable(path, errno);
  const std::unique_ptr<std::FILE, decltype([](std::FILE* it) { std::fclose(it); })> file(
      fdopen(fd, "r"));
  struct stat status {};
  if (fstat(fd, &status) != 0) return unreadable(path, errno);
  if (!S_ISREG(status.st_mode)) return FileRefusal{path + " is not a regular file"};
  if (auto problem = why_not_trusted(status, path)) return FileRefusal{std::move(*problem)};
  for (const std::string& name : {path, resolved_path(fd, path)}) {
    if (auto problem = why_folder_not_trusted(name)) return std::move(*problem);
  }
  FileText read_so_far;
  std::array<char, 4096> piece{};
  ssize_t size = 0;
  while ((size = read(fd, piece.data(), piece.size())) > 0) {
    read_so_far.text.append(piece.data(), static_cast<std::size_t>(size));
    if (read_so_far.text.size() > kMaxFileBytes) {
      return FileRefusal{path + " is longer than 1 MB"};
    }
  }
  if (size < 0) return unreadable(path, errno);
  return read_so_far;
}

}  // namespace pulse
