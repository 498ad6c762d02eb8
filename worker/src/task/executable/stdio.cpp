#include "task/executable/stdio.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "task/supervised/pipe_reader.hpp"

namespace pulse {
namespace {

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

UniqueFd open_memory_file() noexcept {
  UniqueFd fd(memfd_create("pulse-stdin", MFD_CLOEXEC | MFD_NOEXEC_SEAL));
  // Kernels before 6.3 do not know the flag that forbids executing the file.
  if (!fd.valid() && errno == EINVAL) fd.reset(memfd_create("pulse-stdin", MFD_CLOEXEC));
  return fd;
}

int fill(UniqueFd& file, std::string_view text) noexcept {
  file = open_memory_file();
  if (!file.valid()) return errno;
  while (!text.empty()) {
    const ssize_t size = ::write(file.get(), text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return lseek(file.get(), 0, SEEK_SET) < 0 ? errno : 0;
}

int open_null(UniqueFd& fd) noexcept {
  fd.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  return fd.valid() ? 0 : errno;
}

int share(int own, UniqueFd& fd) noexcept {
  fd.reset(fcntl(own, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  return fd.valid() ? 0 : errno;
}

}  // namespace

int TaskStdio::open(std::string_view stdin_text, Output output) {
  if (const int error = fill(stdin_fd, stdin_text); error != 0) return error;
  if (output == Output::inherited) {
    if (const int error = share(STDOUT_FILENO, stdout_fd); error != 0) return error;
    if (const int error = share(STDERR_FILENO, stderr_fd); error != 0) return error;
    return open_pipe(pulse_reader, pulse_fd);
  }
  const int stdout_error =
      output == Output::read ? open_pipe(stdout_reader, stdout_fd) : open_null(stdout_fd);
  if (stdout_error != 0) return stdout_error;
  if (const int error = open_pipe(stderr_reader, stderr_fd); error != 0) return error;
  return open_pipe(pulse_reader, pulse_fd);
}

}  // namespace pulse
