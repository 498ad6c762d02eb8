#include "text/trusted_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace pulse {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1024} * 1024;

std::string why_unreadable(const std::string& path, int error) {
  return "cannot read " + path + ": " + std::generic_category().message(error);
}

}  // namespace

std::variant<FileText, std::string> read_trusted_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return why_unreadable(path, errno);
  const std::unique_ptr<std::FILE, decltype([](std::FILE* it) { std::fclose(it); })> file(
      fdopen(fd, "r"));
  struct stat status {};
  if (fstat(fd, &status) != 0) return why_unreadable(path, errno);
  if (!S_ISREG(status.st_mode)) return path + " is not a regular file";
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return path + " may be written by other users; take it away with chmod go-w";
  }
  FileText read_so_far;
  std::array<char, 4096> piece{};
  ssize_t size = 0;
  while ((size = read(fd, piece.data(), piece.size())) > 0) {
    read_so_far.text.append(piece.data(), static_cast<std::size_t>(size));
    if (read_so_far.text.size() > kMaxFileBytes) return path + " is longer than 1 MB";
  }
  if (size < 0) return why_unreadable(path, errno);
  return read_so_far;
}

}  // namespace pulse
