#include "task/supervised/pipe_reader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace pulse {
namespace {

constexpr std::size_t kReadBytes = std::size_t{64} * 1024;
// The most an unprivileged task can make of a pipe (/proc/sys/fs/pipe-max-size by default).
constexpr std::size_t kMaxReadsInPipe = std::size_t{1024} * 1024 / kReadBytes;

}  // namespace

int open_pipe(UniqueFd& reader, UniqueFd& writer) noexcept {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return errno;
  reader.reset(ends[0]);
  writer.reset(ends[1]);
  return 0;
}

int PipeReader::open(uv_loop_t* loop, UniqueFd fd, OnBytes on_bytes) {
  auto watch = std::make_unique<uv_poll_t>();
  // Makes the descriptor non-blocking, too.
  const int code = uv_poll_init(loop, watch.get(), fd.get());
  if (code != 0) return code;
  watch->data = this;
  fd_ = std::move(fd);
  watch_ = own_handle(std::move(watch));
  on_bytes_ = std::move(on_bytes);
  resume();
  return 0;
}

void PipeReader::pause() noexcept {
  if (watch_) uv_poll_stop(watch_.get());
}

void PipeReader::resume() noexcept {
  if (!watch_) return;
  uv_poll_start(watch_.get(), UV_READABLE, [](uv_poll_t* watch, int, int) {
    static_cast<PipeReader*>(watch->data)->read_once();
  });
}

void PipeReader::drain() {
  for (std::size_t reads = 0; reads < kMaxReadsInPipe && read_once(); ++reads) {
  }
}

void PipeReader::close() noexcept {
  watch_.reset();
  fd_.reset();
}

bool PipeReader::read_once() {
  if (!watch_) return false;
  std::array<char, kReadBytes> buffer;
  ssize_t size = 0;
  do {
    size = ::read(fd_.get(), buffer.data(), buffer.size());
  } while (size < 0 && errno == EINTR);
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (size <= 0) close();
  on_bytes_(std::string_view(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0));
  return size > 0;
}

}  // namespace pulse
