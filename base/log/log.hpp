// Log: lines of text for people, one JSON object a line for machines. A line is an event with
// fields. A separate thread writes, because standard error may be a full pipe and the loop must
// never wait for a reader. Payloads and tokens never appear: callers pass ids, names and numbers.
//
// Invariants:
// - `mutex_` guards the fields that say so; the writing thread alone uses `is_cut_`; the listeners
//   change only before other threads log and after their last event.
// - A line is written, or counted in `dropped_`: when too many lines wait, and when a line cannot
//   be written, as on a full disk. The next line that can be written tells the count.
// - write() never waits for the descriptor.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

namespace pulse {

enum class LogLevel { debug, info, warning, error };
enum class LogFormat { text, json };
enum class LogColour { none, by_outcome };  // none: also for terminals that want none

struct LogField {
  std::string_view key;
  std::variant<std::string, std::int64_t, std::chrono::nanoseconds> value;  // no text: nothing

  LogField(std::string_view key, std::int64_t number) : key(key), value(number) {}
  // Nothing is left out.
  template <typename Value>
  LogField(std::string_view key, const std::optional<Value>& optional) : key(key) {
    if (optional) value = *optional;
  }
  // In milliseconds, with the rest of the nanoseconds as decimals.
  LogField(std::string_view key, std::chrono::nanoseconds time) : key(key), value(time) {}
  LogField(std::string_view key, std::string text) : key(key), value(std::move(text)) {}
};

// The fields of one event. The caller keeps the fields until the call that takes them has returned.
class LogFields {
 public:
  LogFields() = default;
  LogFields(std::initializer_list<LogField> fields) {
    begin_ = fields.begin();
    end_ = fields.end();
  }
  explicit LogFields(const std::vector<LogField>& fields)
      : begin_(fields.data()), end_(fields.data() + fields.size()) {}

  const LogField* begin() const { return begin_; }
  const LogField* end() const { return end_; }

 private:
  const LogField* begin_ = nullptr;
  const LogField* end_ = nullptr;
};

class Log {
 public:
  // Takes one line, without the newline, on the writing thread.
  using Sink = std::function<void(std::string_view line)>;
  // Hears of every event, also below the threshold, on the thread that logs it.
  using Fields = LogFields;
  using Listener = std::function<void(std::string_view event, Fields fields)>;

  // The text that stands below the lines now; asked on the writing thread.
  using LastText = std::function<std::string()>;

  // Writes to `descriptor`, which stays the caller's. Colours are of the text format.
  Log(LogFormat format, LogLevel threshold, int descriptor, LogColour colour = LogColour::none);
  Log(LogFormat format, LogLevel threshold, Sink sink);
  // A part of `whole`, which outlives this: each event goes to `whole` with the field `database`.
  Log(Log& whole, std::string database);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Before other threads log anything. So the counts match the log.
  void listen(Listener listener) { listeners_.push_back(std::move(listener)); }
  // After the last event of any thread.
  void forget_listeners() { listeners_.clear(); }

  // From now on lines wait for a moment, because this text, on a terminal, is rewritten below the
  // lines ten times a second at most. The text is gone once the log is closed.
  void keep_below(LastText text);

  // May be called from any thread; never blocks on the descriptor.
  void write(LogLevel level, std::string_view event, Fields fields = {});

  void debug(std::string_view event, Fields fields = {}) { write(LogLevel::debug, event, fields); }
  void info(std::string_view event, Fields fields = {}) { write(LogLevel::info, event, fields); }
  void warning(std::string_view event, Fields fields = {}) {
    write(LogLevel::warning, event, fields);
  }
  void error(std::string_view event, Fields fields = {}) { write(LogLevel::error, event, fields); }

  // At any threshold: an operator has asked.
  void answer(std::string_view event, Fields fields);

  // Writes the waiting lines and stops the writer; gives up on a reader that takes nothing for a
  // second. Later lines are dropped.
  void close() noexcept;

 private:
  void put(LogLevel level, std::string_view event, Fields fields);
  std::vector<LogField> with_database(Fields fields) const;
  void tell_listeners(std::string_view event, Fields fields) const;
  void run_writer() noexcept;
  void wait_for_more(std::unique_lock<std::mutex>& lock);
  std::string take_waiting(std::int64_t& told);
  std::string_view write_out(std::string_view lines) noexcept;
  void count_lost(std::string_view lines, std::int64_t told);
  void tell_sink(std::string_view lines) noexcept;

  Log* const whole_ = nullptr;  // see the constructor of a part
  const std::string database_;
  const LogFormat format_;
  const LogLevel threshold_;
  const int descriptor_ = -1;
  const LogColour colour_ = LogColour::none;
  const Sink sink_;
  std::vector<Listener> listeners_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;  // guarded by mutex_
  std::int64_t dropped_ = 0;         // guarded by mutex_
  std::int64_t unheard_ = 0;         // guarded by mutex_: dropped where no listener can be told
  bool is_cut_ = false;              // the writer's: a part of a line has been written
  LastText last_text_;               // guarded by mutex_
  bool closing_ = false;             // guarded by mutex_
  std::thread writer_;
};

}  // namespace pulse
