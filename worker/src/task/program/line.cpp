#include "task/program/line.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text/json_members.hpp"
#include "base/text/json_text.hpp"
#include "base/text/parse_number.hpp"
#include "task/executable/environment.hpp"
#include "task/executable/tasks_folder.hpp"

namespace pulse {
namespace {

constexpr std::int64_t kProtocol = 1;
constexpr std::int64_t kMaxTakes = 10'000;
constexpr std::size_t kMaxTasks = 1000;
constexpr std::size_t kMaxNameBytes = 100;

using nlohmann::json;

// A number of jobs at once; `otherwise` where the object says none. Nothing for another value.
std::optional<std::size_t> takes_of(const json& object, std::size_t otherwise) {
  const auto member = object.find("takes");
  if (member == object.end()) return otherwise;
  if (!member->is_number_integer()) return std::nullopt;
  const bool is_huge = member->is_number_unsigned() && member->get<std::uint64_t>() > kMaxTakes;
  if (is_huge || member->get<std::int64_t>() < 1) return std::nullopt;
  return member->get<std::size_t>();
}

// The fault of the tasks; empty for none.
std::string take_tasks(const json& tasks, Hello& hello) {
  if (!tasks.is_object() || tasks.empty()) return "a hello without tasks";
  if (tasks.size() > kMaxTasks) return "a hello with more than 1000 tasks";
  for (const auto& [name, settings] : tasks.items()) {
    const std::string shown = "task '" + name.substr(0, kMaxNameBytes) + "' of its hello";
    if (!TasksFolder::is_valid_name(name)) return shown + " has no name for a task";
    if (!settings.is_object()) return shown + " has no object of settings";
    const auto takes = takes_of(settings, hello.takes);
    if (!takes) return shown + " takes a number of jobs that is not from 1 to 10000";
    hello.tasks[name] = std::min(*takes, hello.takes);
  }
  return {};
}

}  // namespace

std::optional<Hello> parse_hello(std::string_view line, std::string& why) {
  const json document = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("hello") || !document["hello"].is_object()) {
    why = "a line before its hello";
    return std::nullopt;
  }
  const json& said = document["hello"];
  const auto protocol = said.find("protocol");
  if (protocol == said.end() || *protocol != kProtocol) {
    why = "a hello of protocol " +
          (protocol == said.end() ? "none" : protocol->dump().substr(0, kMaxNameBytes)) +
          ", and this worker speaks protocol 1";
    return std::nullopt;
  }
  Hello hello;
  const auto takes = takes_of(said, 1);
  if (!takes) {
    why = "a hello that takes a number of jobs that is not from 1 to 10000";
    return std::nullopt;
  }
  hello.takes = *takes;
  why = take_tasks(said.value("tasks", json()), hello);
  if (!why.empty()) return std::nullopt;
  const auto name = said.find("name");
  if (name != said.end() && name->is_string()) {
    hello.name = name->get<std::string>().substr(0, kMaxNameBytes);
  }
  return hello;
}

std::string program_job_line(const TaskInput& input) {
  std::string text;
  append_task_stdin(text, input, IdForm::text);
  std::string front = "{\"id\":\"" + LineJob(input.job_id, input.database).text() + "\",\"task\":";
  append_json_string(front, input.identifier);
  text.replace(0, 1, front + ',');
  put_in_one_line(text, 0);
  return text;
}

void append_program_cancel_line(std::string& text, const LineJob& job, EndReason reason,
                                Duration grace) {
  text += "{\"cancel\":\"" + job.text() + "\",\"reason\":\"" + reason_name(reason) +
          "\",\"grace_ms\":" + std::to_string(grace.count()) + "}\n";
}

std::optional<LineJob> job_of_line(std::string_view beginning) {
  constexpr std::string_view kFront = "{\"id\":";
  std::string compact;
  for (const char character : beginning.substr(0, 64)) {
    if (character != ' ' && character != '\t' && character != '\r') compact += character;
  }
  if (!compact.starts_with(kFront)) return std::nullopt;
  std::string_view value = std::string_view(compact).substr(kFront.size());
  value = value.substr(0, value.find_first_of(",}"));
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  return parse_line_job(value);
}

bool names_text_as_job(std::string_view line) {
  const json document = json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto id = document.is_object() ? document.find("id") : document.end();
  return id != document.end() && id->is_string() && !parse_line_job(id->get<std::string>());
}

}  // namespace pulse
