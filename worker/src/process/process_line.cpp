#include "process/process_line.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "executable/task_message.hpp"
#include "text/parse_number.hpp"
#include "text/stderr_tail.hpp"

namespace pulse {
namespace {

constexpr std::int64_t kMaxAtOnce = 10'000;
constexpr double kMaxSeconds = 1e9;

bool is_space(char character) {
  return character == ' ' || character == '\t' || character == '\r' || character == '\n';
}

// Walks over the members of an object that was found to be well-formed before.
class Members {
 public:
  explicit Members(std::string_view object) : rest_(object) {
    skip_space();
    rest_.remove_prefix(1);
  }

  // The next key and the text of its value; false behind the last.
  bool next(std::string_view& key, std::string_view& value) {
    skip_separators();
    if (rest_.front() == '}') return false;
    key = take(string_length());
    key = key.substr(1, key.size() - 2);
    skip_separators();
    value = take(value_length());
    return true;
  }

 private:
  void skip_space() {
    while (is_space(rest_.front())) rest_.remove_prefix(1);
  }
  void skip_separators() {
    while (is_space(rest_.front()) || rest_.front() == ',' || rest_.front() == ':') {
      rest_.remove_prefix(1);
    }
  }
  std::string_view take(std::size_t length) {
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }
  std::size_t string_length(std::size_t from = 0) const {
    std::size_t end = from + 1;
    while (rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    return end + 1 - from;
  }
  std::size_t value_length() const {
    if (rest_.front() == '"') return string_length();
    if (rest_.front() != '{' && rest_.front() != '[') {
      return std::min(rest_.find_first_of(",} \t\r\n"), rest_.size());
    }
    std::size_t end = 0;
    int depth = 0;
    do {
      const char character = rest_[end];
      if (character == '{' || character == '[') ++depth;
      if (character == '}' || character == ']') --depth;
      end += character == '"' ? string_length(end) : 1;
    } while (depth > 0);
    return end;
  }

  std::string_view rest_;
};

std::optional<Duration> seconds_of(std::string_view text) {
  const auto seconds = parse_number<double>(text);
  if (!seconds || !(*seconds >= 0 && *seconds <= kMaxSeconds)) return std::nullopt;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds));
}

std::string storable_value(std::string_view json_string) {
  const auto value = nlohmann::json::parse(json_string, nullptr, /*allow_exceptions=*/false);
  return storable_text(value.get<std::string>());
}

// What a line has beside the words that it shares with PULSE_FD.
struct Words {
  std::optional<std::string_view> takes, id, error, retry, retry_in, snooze;
};

Words words_of(std::string_view line) {
  Words words;
  std::string_view key;
  std::string_view value;
  for (Members members(line); members.next(key, value);) {
    if (key == "takes") words.takes = value;
    if (key == "id") words.id = value;
    if (key == "error") words.error = value;
    if (key == "retry") words.retry = value;
    if (key == "retry_in") words.retry_in = value;
    if (key == "snooze") words.snooze = value;
  }
  return words;
}

std::optional<ExecutionEnd> failure_of(const Words& words, std::string& why) {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::failed;
  end.reason = "its answer";
  if (words.error->front() != '"') {
    why = "an error that is no string";
    return std::nullopt;
  }
  end.error = storable_value(*words.error);
  if (words.retry && *words.retry != "true" && *words.retry != "false") {
    why = "a retry that is neither true nor false";
    return std::nullopt;
  }
  if (words.retry == "false") end.kind = ExecutionEnd::Kind::failed_for_good;
  if (words.retry_in) {
    end.again_in = seconds_of(*words.retry_in);
    if (!end.again_in) why = "a retry_in that is no number of seconds";
    if (!end.again_in) return std::nullopt;
  }
  return end;
}

// The end of its job, if the line is one.
bool read_end(const Words& words, TaskMessage& message, ProcessLine& line, std::string& why) {
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
    if (!line.end->again_in) why = "a snooze that is no number of seconds";
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
  text.replace(begin, 1, "{\"id\":" + std::to_string(input.job_id) + ',');
  // A payload of type json keeps its own line breaks, which stand between its tokens only: within a
  // string JSON has none.
  for (std::size_t i = begin; i + 1 < text.size(); ++i) {
    if (text[i] == '\n' || text[i] == '\r') text[i] = ' ';
  }
}

void append_cancel_line(std::string& text, std::int64_t job_id, EndReason reason, Duration grace) {
  text += "{\"cancel\":" + std::to_string(job_id) + ",\"reason\":\"" + reason_name(reason) +
          "\",\"grace_ms\":" + std::to_string(grace.count()) + "}\n";
}

std::optional<ProcessLine> parse_process_line(std::string_view line, std::string& why) {
  auto message = parse_task_message(line);
  if (!message) {
    why = "a line that is no JSON object as it should be";
    return std::nullopt;
  }
  const Words words = words_of(line);
  ProcessLine parsed;
  if (words.takes) {
    parsed.takes = parse_number<std::int64_t>(*words.takes);
    if (parsed.takes && *parsed.takes >= 1 && *parsed.takes <= kMaxAtOnce) return parsed;
    why = "a number of jobs that it takes which is not from 1 to 10000";
    return std::nullopt;
  }
  const auto job_id = words.id ? parse_number<std::int64_t>(*words.id) : std::nullopt;
  if (!job_id) {
    why = "a line without the id of a job";
    return std::nullopt;
  }
  parsed.job_id = *job_id;
  if (!read_end(words, *message, parsed, why)) return std::nullopt;
  parsed.progress = std::move(message->progress);
  parsed.payload = std::move(message->payload);
  return parsed;
}

bool looks_like_answer(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  return begin != std::string_view::npos && line[begin] == '{';
}

}  // namespace pulse
