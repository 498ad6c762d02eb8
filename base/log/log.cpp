#include "base/log/log.hpp"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log/line.hpp"
#include "base/log/status_line.hpp"

namespace pulse {
namespace {

// About a megabyte of lines; a worker that outruns the log by more than this loses lines, not
// beats.
constexpr std::size_t kMaxWaiting = 10'000;

// How long a reader may take nothing before the writer checks again whether the log is being
// closed.
constexpr int kPollMilliseconds = 1'000;

// Between two readings of the text kept below: as often as an eye can follow.
constexpr std::chrono::milliseconds kRewritingPause(100);

}  // namespace

Log::Log(LogFormat format, LogLevel threshold, int descriptor, LogColour colour)
    : format_(format), threshold_(threshold), descriptor_(descriptor), colour_(colour) {
  writer_ = std::thread([this] { run_writer(); });
}

Log::Log(LogFormat format, LogLevel threshold, Sink sink)
    : format_(format), threshold_(threshold), sink_(std::move(sink)) {
  writer_ = std::thread([this] { run_writer(); });
}

Log::Log(Log& whole, std::string database)
    : whole_(&whole),
      database_(std::move(database)),
      format_(whole.format_),
      threshold_(whole.threshold_) {}

Log::~Log() { close(); }

std::vector<LogField> Log::with_database(Fields fields) const {
  std::vector<LogField> all(fields.begin(), fields.end());
  all.emplace_back("database", database_);
  return all;
}

void Log::answer(std::string_view event, Fields fields) {
  if (whole_ != nullptr) return whole_->answer(event, Fields(with_database(fields)));
  put(LogLevel::info, event, fields);
}

void Log::write(LogLevel level, std::string_view event, Fields fields) {
  if (whole_ != nullptr) return whole_->write(level, event, Fields(with_database(fields)));
  tell_listeners(event, fields);
  if (level >= threshold_) put(level, event, fields);
}

void Log::tell_listeners(std::string_view event, Fields fields) const {
  for (const Listener& listener : listeners_) listener(event, fields);
}

void Log::keep_below(LastText text) {
  {
    const std::lock_guard lock(mutex_);
    last_text_ = std::move(text);
  }
  changed_.notify_one();
}

void Log::put(LogLevel level, std::string_view event, Fields fields) {
  std::string line =
      log_line({format_, colour_}, std::chrono::system_clock::now(), level, event, fields);
  std::int64_t dropped = 0;
  bool is_dropped = false;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    dropped = std::exchange(unheard_, 0);
    is_dropped = waiting_.size() >= kMaxWaiting;
    if (is_dropped) {
      ++dropped_;
      ++dropped;
    } else {
      waiting_.push_back(std::move(line));
    }
  }
  if (!is_dropped) changed_.notify_one();
  if (dropped > 0) tell_listeners("log_lines_dropped", {{"count", dropped}});
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
  StatusLine status_line;
  std::unique_lock lock(mutex_);
  for (;;) {
    wait_for_more(lock);
    const bool is_over = closing_;  // no line comes any more
    std::int64_t told = 0;
    const std::string lines = take_waiting(told);
    const LastText last_text = is_over ? nullptr : last_text_;
    lock.unlock();
    const std::string text = status_line.write(lines, last_text ? last_text() : "");
    const std::string_view lost = write_out(text);
    lock.lock();
    if (!lost.empty()) count_lost(lost, told);
    if (is_over || (!lost.empty() && closing_)) return;
  }
}

// The line that tells the count of earlier lines counts for each of them. The line is the last of a
// batch.
void Log::count_lost(std::string_view lines, std::int64_t told) {
  const auto ends = static_cast<std::int64_t>(std::count(lines.begin(), lines.end(), '\n'));
  const std::int64_t own = told > 0 ? ends - 1 : ends;
  dropped_ += own + told;
  unheard_ += own;
}

void Log::wait_for_more(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return closing_ || !waiting_.empty() || last_text_; });
  if (last_text_) changed_.wait_for(lock, kRewritingPause, [this] { return closing_; });
}

std::string Log::take_waiting(std::int64_t& told) {
  std::string lines;
  for (const std::string& line : waiting_) lines += line;
  waiting_.clear();
  if (dropped_ > 0) {
    lines += log_line({format_, colour_}, std::chrono::system_clock::now(), LogLevel::warning,
                      "log_lines_dropped", {{"count", dropped_}});
    told = std::exchange(dropped_, 0);
  }
  return lines;
}

void Log::tell_sink(std::string_view lines) noexcept {
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    try {
      sink_(lines.substr(0, end));
    } catch (...) {  // a log that fails must not end the work
    }
    lines.remove_prefix(std::min(lines.size(), end == std::string_view::npos ? end : end + 1));
  }
}

// In pieces that a writable pipe takes at once, so that the thread can always be stopped. Returns
// the lines that could not be written; after a cut line the next line begins on a new line.
std::string_view Log::write_out(std::string_view lines) noexcept {
  if (sink_) {
    tell_sink(lines);
    return {};
  }
  if (is_cut_ && ::write(descriptor_, "\n", 1) == 1) is_cut_ = false;
  char last = '\n';
  while (!lines.empty()) {
    pollfd writable{descriptor_, POLLOUT, 0};
    const int ready = poll(&writable, 1, kPollMilliseconds);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      const std::lock_guard lock(mutex_);
      if (closing_) return lines;
      continue;
    }
    const std::size_t piece = std::min<std::size_t>(lines.size(), PIPE_BUF);
    const ssize_t written = ::write(descriptor_, lines.data(), piece);
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0) {
      is_cut_ = is_cut_ || last != '\n';
      return lines;
    }
    last = lines[static_cast<std::size_t>(written) - 1];
    lines.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace pulse
