// Written lines: the lines that tasks write to stdout and stderr, as lines of the log.
//
// Bounded in every way: a line is cut, a task has a number of lines in a second, and so have all
// tasks together: a flood costs neither memory nor the lines of other tasks. The log counts the
// lines left out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/log/log.hpp"
#include "base/loop/timers.hpp"

namespace pulse {

// How the worker uses the output of tasks.
enum class TaskOutputUse {
  log,      // lines of the log; the last line of a failed task stands beside the failure
  inherit,  // the output goes where this process writes to, and the worker keeps nothing
  discard,  // nothing in the log; the end of stderr is kept with the attempt
};

// A number of lines in each second.
class LineBudget {
 public:
  explicit LineBudget(std::int64_t lines) : lines_(lines) {}
  bool has_any(TimePoint now);
  void spend() { --left_; }

 private:
  const std::int64_t lines_;
  TimePoint second_began_{};
  std::int64_t left_ = 0;
};

// The state that all tasks of a worker share.
class WrittenLog {
 public:
  WrittenLog(TaskOutputUse use, Timers& timers, Log& log) : use(use), timers(timers), log(log) {}

  const TaskOutputUse use;
  Timers& timers;
  Log& log;
  LineBudget budget{1000};
};

// Of one task, or of one persistent process.
class WrittenLines {
 public:
  enum Stream { out, err };
  static constexpr std::size_t kMaxLineBytes = 1000;
  static constexpr std::size_t kMaxTextBytes = 4000;

  struct Writer {
    std::string task;
    std::optional<std::int64_t> job;
    std::optional<std::int64_t> attempt;
    std::string trace_id = {};
    std::string program = {};
  };
  WrittenLines(WrittenLog& log, Writer writer) : log_(log), writer_(std::move(writer)) {}

  // The next bytes, of any number, cut anywhere.
  void feed(Stream stream, std::string_view bytes);
  // A text that the code of a job logs, as a stack: one line of the log, whose line breaks the log
  // escapes. An unknown level is info.
  void tell(std::string_view level, std::string_view text, const Writer& about);
  // Nothing more comes: the last lines may lack a newline.
  void finish();

 private:
  struct Pending {
    std::string line;
    bool is_cut = false;
  };

  bool may_tell();
  std::size_t leave_out(Pending& pending, std::string_view bytes);
  void take_line(Stream stream, const Pending& whole);
  void tell_left_out();

  WrittenLog& log_;
  const Writer writer_;
  std::array<Pending, 2> pending_;
  LineBudget budget_{100};
  std::int64_t left_out_ = 0;
};

}  // namespace pulse
