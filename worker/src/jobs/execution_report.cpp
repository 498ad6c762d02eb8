#include "jobs/execution_report.hpp"

#include <string_view>
#include <utility>

#include "base/text/utf8.hpp"

namespace pulse {
namespace {

template <typename Value>
void take_newer(std::optional<Value>& kept, std::optional<Value>& newer) {
  if (newer) kept = std::move(newer);
}

constexpr std::size_t kMaxCauseBytes = 500;

// The line of an error that tells most, as lists of the server choose it
// (extension/finish/error_line.cpp): the last line that begins with a word, because the frames of a
// stack are indented; else the last line that is not blank.
std::string_view telling_line(std::string_view text) {
  std::string_view indented;
  while (true) {
    const std::size_t line_break = text.find_last_of('\n');
    const std::string_view line = text.substr(line_break + 1);  // npos + 1 is the beginning
    const std::size_t word = line.find_first_not_of(" \t\r");
    if (word == 0) return line;
    if (word != std::string_view::npos && indented.empty()) indented = line;
    if (line_break == std::string_view::npos) return indented;
    text = text.substr(0, line_break);
  }
}

// `words`, and behind them the telling line of `error`, without the sentence with which the worker
// has begun `error`.
std::string with_telling_line(std::string words, std::string_view error) {
  constexpr std::string_view kSeparator = ": ";
  const std::size_t end_of_sentence = error.find(kSeparator);
  if (end_of_sentence == std::string_view::npos) return words;
  words += kSeparator;
  words += telling_line(error.substr(end_of_sentence + kSeparator.size()));
  return words;
}

// The server's message, DETAIL and HINT in one line; the place of the error is for last_error.
std::string without_context(std::string_view error) {
  std::string text;
  for (const char character : error.substr(0, error.find("\nCONTEXT: "))) {
    text += character == '\n' ? std::string("; ") : std::string(1, character);
  }
  return text;
}

std::string long_cause_of(const ExecutionEnd& end) {
  using Kind = ExecutionEnd::Kind;
  const bool is_death = end.kind == Kind::exited || end.kind == Kind::crashed;
  if (is_death) return with_telling_line(kind_of_end(end), end.error);
  if (end.is_answer && !end.error.empty()) return std::string(telling_line(end.error));
  if (!end.reason.empty()) return end.reason;
  switch (end.kind) {
    case Kind::failed:
    case Kind::failed_for_good:
    case Kind::signalled: return with_telling_line(kind_of_end(end), end.error);
    case Kind::refused: return without_context(end.error);
    case Kind::not_started:
    case Kind::session_lost:
    case Kind::done: return end.error;
    default: return kind_of_end(end);
  }
}

}  // namespace

std::string kind_of_end(const ExecutionEnd& end) {
  using Kind = ExecutionEnd::Kind;
  if (!end.reason.empty()) return end.reason;
  switch (end.kind) {
    case Kind::succeeded:
    case Kind::snoozed:
    case Kind::completed: return {};
    case Kind::failed:
    case Kind::failed_for_good: return "exit code " + std::to_string(end.exit_code);
    case Kind::signalled: return "signal " + std::to_string(end.signal);
    case Kind::not_started: return "not started";
    case Kind::minder_lost: return "minder lost";
    case Kind::refused: return "sqlstate " + end.sqlstate;
    case Kind::session_lost: return "session lost";
    case Kind::exited:
    case Kind::crashed: return "program ended";
    case Kind::interrupted: return "program replaced";
    case Kind::done: return "transaction did not commit";
  }
  return {};
}

std::string cause_of(const ExecutionEnd& end) {
  return std::string(utf8_prefix(long_cause_of(end), kMaxCauseBytes));
}

void TaskProgress::take_newer(TaskProgress newer) {
  pulse::take_newer(fraction, newer.fraction);
  pulse::take_newer(message, newer.message);
  pulse::take_newer(stage, newer.stage);
  pulse::take_newer(checkpoint, newer.checkpoint);
}

const char* reason_name(EndReason reason) {
  switch (reason) {
    case EndReason::none: return "none";
    case EndReason::timeout: return "timeout";
    case EndReason::stall: return "stall";
    case EndReason::cancelled: return "cancelled";
    case EndReason::unreachable: return "unreachable";
    case EndReason::revoked: return "lost";
    case EndReason::interrupted: return "shutdown";
  }
  return "";
}

ExecutionEnd withdrawn_end() {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::failed;
  end.reason = "not begun";
  end.ran_for = std::chrono::nanoseconds::zero();
  return end;
}

}  // namespace pulse
