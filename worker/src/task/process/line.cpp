#include "task/process/line.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text/json_members.hpp"
#include "base/text/parse_number.hpp"
#include "base/text/stderr_tail.hpp"
#include "task/executable/message.hpp"

namespace pulse {
namespace {

constexpr std::int64_t kMaxAtOnce = 10'000;
constexpr double kMaxSeconds = 1e9;

std::optional<Duration> seconds_of(std::string_view text) {
  const auto seconds = parse_number<double>(text);
  if (!seconds || !(*seconds >= 0 && *seconds <= kMaxSeconds)) return std::nullopt;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds));
}

// A number, or the digits as a string: some languages write ids beyond 2^53 so.
std::optional<LineJob> job_named(std::string_view value) {
  return parse_line_job(value.starts_with('"') ? json_string_value(value) : std::string(value));
}

// The words of a line beside the words of PULSE_FD.
struct LineWords {
  std::optional<std::string_view> takes, id, error, retry, retry_in, snooze, done, log, level;
};

LineWords words_of(std::string_view line) {
  LineWords words;
  std::string_view key;
  std::string_view value;
  for (JsonMembers members(line); members.next(key, value);) {
    if (key == "takes") words.takes = value;
    if (key == "id") words.id = value;
    if (key == "error") words.error = value;
    if (key == "retry") words.retry = value;
    if (key == "retry_in") words.retry_in = value;
    if (key == "snooze") words.snooze = value;
    if (key == "done") words.done = value;
    if (key == "log") words.log = value;
    if (key == "level") words.level = value;
  }
  return words;
}

std::optional<ExecutionEnd> failure_of(const LineWords& words, std::string& why) {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::failed;
  end.reason = "its answer";
  if (words.error->front() != '"') {
    why = "an error that is no string";
    return std::nullopt;
  }
  end.error = storable_text(json_string_value(*words.error));
  if (words.retry && *words.retry != "true" && *words.retry != "false") {
    why = "a retry that is neither true nor false";
    return std::nullopt;
  }
  if (words.retry == "false") end.kind = ExecutionEnd::Kind::failed_for_good;
  if (words.retry_in) {
    end.again_in = seconds_of(*words.retry_in);
    if (!end.again_in) why = "a retry_in that is not from 0 to 1000000000 seconds";
    if (!end.again_in) return std::nullopt;
  }
  return end;
}

// Reads the end of a job, if the line holds one. False: `why` names the fault.
bool read_end(const LineWords& words, TaskMessage& message, ProcessLine& line, std::string& why) {
  const int ends = (message.result ? 1 : 0) + (words.error ? 1 : 0) + (words.snooze ? 1 : 0);
  if (ends == 0) return true;
  if (ends > 1) {
    why = "more than one of result, error and snooze";
    return false;
  }
  if (words.error) {
    line.end = failure_of(words, why);
    if (!line.end) return false;
  } else if (words.snooze) {
    line.end.emplace().kind = ExecutionEnd::Kind::snoozed;
    line.end->again_in = seconds_of(*words.snooze);
    line.end->checkpoint = std::exchange(message.progress.checkpoint, std::nullopt);
    if (!line.end->again_in) why = "a snooze that is not from 0 to 1000000000 seconds";
    if (!line.end->again_in) return false;
  } else {
    line.end.emplace().kind = ExecutionEnd::Kind::succeeded;
    if (message.result != "null") line.end->result = std::move(message.result);
  }
  line.end->is_answer = true;
  return true;
}

}  // namespace

void append_job_line(std::string& text, const TaskInput& input) {
  const std::size_t begin = text.size();
  append_task_stdin(text, input);
  const std::string id = std::to_string(input.job_id);
  text.replace(begin, 1, "{\"id\":" + id + ",\"id_text\":\"" + id + "\",");
  put_in_one_line(text, begin);
}

std::string LineJob::text() const {
  return database.empty() ? std::to_string(id) : database + ':' + std::to_string(id);
}

std::optional<LineJob> parse_line_job(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const bool has_name = colon != std::string_view::npos;
  const auto id = parse_number<std::int64_t>(has_name ? text.substr(colon + 1) : text);
  if (!id || colon == 0) return std::nullopt;
  return LineJob(*id, std::string(has_name ? text.substr(0, colon) : std::string_view()));
}

void put_in_one_line(std::string& text, std::size_t begin) {
  for (std::size_t i = begin; i + 1 < text.size(); ++i) {
    if (text[i] == '\n' || text[i] == '\r') text[i] = ' ';
  }
}

void append_cancel_line(std::string& text, std::int64_t job_id, EndReason reason, Duration grace) {
  const std::string id = std::to_string(job_id);
  text += "{\"cancel\":" + id + ",\"id_text\":\"" + id + "\",\"reason\":\"" + reason_name(reason) +
          "\",\"grace_ms\":" + std::to_string(grace.count()) + "}\n";
}

std::optional<ProcessLine> parse_process_line(std::string_view line, std::string& why) {
  auto message = parse_task_message(line);
  if (!message) {
    why = "a line that is no JSON object as it should be";
    return std::nullopt;
  }
  const LineWords words = words_of(line);
  ProcessLine parsed;
  if (words.takes) {
    parsed.takes = parse_number<std::int64_t>(*words.takes);
    if (parsed.takes && *parsed.takes >= 1 && *parsed.takes <= kMaxAtOnce) return parsed;
    why = "a number of jobs that it takes which is not from 1 to 10000";
    return std::nullopt;
  }
  auto job = words.id ? job_named(*words.id) : std::nullopt;
  if (!job) {
    why = "a line without the id of a job";
    return std::nullopt;
  }
  parsed.job_id = job->id;
  parsed.database = std::move(job->database);
  if (!read_end(words, *message, parsed, why)) return std::nullopt;
  parsed.is_done = words.done == "true";
  if (words.log && words.log->starts_with('"')) {
    parsed.logged = {storable_text(json_string_value(*words.log)),
                     words.level ? json_string_value(*words.level) : std::string()};
  }
  parsed.progress = std::move(message->progress);
  parsed.payload = std::move(message->payload);
  return parsed;
}

bool may_mean_answer(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  return begin != std::string_view::npos && line[begin] == '{';
}

}  // namespace pulse
