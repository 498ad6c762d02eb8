#include "log.hpp"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "log_line.hpp"

namespace pulse {
namespace {

// About a megabyte of lines; a worker that outruns its log by more than this loses lines, not
// beats.
constexpr std::size_t kMostWaiting = 10'000;

// How long a reader may take nothing before the writer looks again whether the log is being closed.
constexpr int kPollMilliseconds = 1'000;

}  // namespace

Log::Log(LogFormat format, LogLevel threshold, int descriptor)
    : format_(format), threshold_(threshold), descriptor_(descriptor) {
  writer_ = std::thread([this] { run_writer(); });
}

Log::~Log() { close(); }

void Log::write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (level < threshold_) return;
  std::string line = log_line(format_, std::chrono::system_clock::now(), level, event, fields);
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    if (waiting_.size() >= kMostWaiting) {
      ++dropped_;
      return;
    }
    waiting_.push_back(std::move(line));
  }
  changed_.notify_one();
}

void Log::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  if (writer_.joinable()) writer_.join();
}

void Log::run_writer() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::string lines;
    for (const std::string& line : waiting_) lines += line;
    waiting_.clear();
    if (dropped_ > 0) {
      lines += log_line(format_, std::chrono::system_clock::now(), LogLevel::warning,
                        "log_lines_dropped", {{"count", dropped_}});
      dropped_ = 0;
    }
    lock.unlock();
    const bool written = write_out(lines);
    lock.lock();
    if (!written) {
      waiting_.clear();
      if (closing_) return;
    }
  }
}

// In pieces that a writable pipe takes at once, so that the thread can always be stopped.
bool Log::write_out(std::string_view lines) noexcept {
  while (!lines.empty()) {
    pollfd writable{descriptor_, POLLOUT, 0};
    const int ready = poll(&writable, 1, kPollMilliseconds);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      const std::lock_guard lock(mutex_);
      if (closing_) return false;
      continue;
    }
    const std::size_t piece = std::min<std::size_t>(lines.size(), PIPE_BUF);
    const ssize_t written = ::write(descriptor_, lines.data(), piece);
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0) return false;
    lines.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace pulse
