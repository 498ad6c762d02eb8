// Log lines: text for people, one JSON object a line for machines. A line is an event with fields.
// Writing happens on a thread of its own, because standard error may be a full pipe and the loop
// must never wait for it; when too much is waiting, lines are dropped and counted.
// Payloads and tokens never appear: callers pass ids, names and numbers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

namespace pulse {

enum class LogLevel { debug, info, warning, error };
enum class LogFormat { text, json };

struct LogField {
  std::string_view key;
  std::variant<std::int64_t, std::string> value;

  LogField(std::string_view key, std::int64_t number) : key(key), value(number) {}
  LogField(std::string_view key, std::string text) : key(key), value(std::move(text)) {}
};

class Log {
 public:
  // Writes to `descriptor`, which stays the caller's.
  Log(LogFormat format, LogLevel threshold, int descriptor);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // May be called from any thread; never blocks on the descriptor.
  void write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

  void debug(std::string_view event, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::debug, event, fields);
  }
  void info(std::string_view event, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::info, event, fields);
  }
  void warning(std::string_view event, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::warning, event, fields);
  }
  void error(std::string_view event, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::error, event, fields);
  }

  // Writes what is waiting and stops the writer; gives up on a reader that takes nothing for a
  // second. Later lines are dropped.
  void close() noexcept;

 private:
  void run_writer() noexcept;
  bool write_out(std::string_view lines) noexcept;

  const LogFormat format_;
  const LogLevel threshold_;
  const int descriptor_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;  // guarded by mutex_
  std::int64_t dropped_ = 0;         // guarded by mutex_
  bool closing_ = false;             // guarded by mutex_
  std::thread writer_;
};

}  // namespace pulse
