#include "task/executable/environment.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text/json_text.hpp"

namespace pulse {
namespace {

// The kernel refuses to execute a program with a longer variable, and one job key must not make the
// job impossible to run. A value that is left out here stands on stdin.
constexpr std::size_t kMaxValueBytes = std::size_t{32} * 1024;

constexpr std::array<std::string_view, 8> kInherited = {"PATH",   "HOME", "LANG",    "TZ",
                                                        "TMPDIR", "USER", "LOGNAME", "SHELL"};
constexpr std::string_view kInheritedPrefix = "LC_";
constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

bool is_inherited(std::string_view name) {
  return name.starts_with(kInheritedPrefix) ||
         std::find(kInherited.begin(), kInherited.end(), name) != kInherited.end();
}

class Environment {
 public:
  void inherit(const char* const* inherited) {
    bool has_path = false;
    for (; inherited != nullptr && *inherited != nullptr; ++inherited) {
      const std::string_view variable = *inherited;
      const std::string_view name = variable.substr(0, variable.find('='));
      if (!is_inherited(name)) continue;
      has_path = has_path || name == "PATH";
      variables_.emplace_back(variable);
    }
    if (!has_path) set("PATH", kDefaultPath);
  }

  // All but the variables that tell the worker its database, its secrets and its socket.
  void inherit_all(const char* const* inherited) {
    for (; inherited != nullptr && *inherited != nullptr; ++inherited) {
      const std::string_view variable = *inherited;
      const bool is_kept_back = variable.starts_with("PG") || variable.starts_with("PULSE_");
      if (!is_kept_back) variables_.emplace_back(variable);
    }
  }

  // NAME=value each; a later variable replaces an earlier variable of the same name.
  void add(const std::vector<std::string>& more) {
    for (const std::string& variable : more) {
      const std::string begin = variable.substr(0, variable.find('=') + 1);
      std::erase_if(variables_, [&](const auto& other) { return other.starts_with(begin); });
      variables_.push_back(variable);
    }
  }

  void set(std::string_view name, std::string_view value) {
    if (value.size() > kMaxValueBytes || value.find('\0') != std::string_view::npos) return;
    std::string& variable = variables_.emplace_back(name);
    variable += '=';
    variable += value;
  }
  void set(std::string_view name, std::int64_t value) { set(name, std::to_string(value)); }

  std::vector<std::string> take() { return std::move(variables_); }

 private:
  std::vector<std::string> variables_;
};

// Members of the job object, one behind the other.
class JobMembers {
 public:
  explicit JobMembers(std::string& text) : text_(text) {}

  void add(std::string_view name, std::int64_t value) {
    begin(name);
    text_ += std::to_string(value);
  }
  // For languages whose numbers are exact to 2^53 only.
  void add_text(std::string_view name, std::int64_t value) {
    add(name, std::string_view(std::to_string(value)));
  }
  void add_id(std::string_view name, std::int64_t value, IdForm form) {
    form == IdForm::text ? add_text(name, value) : add(name, value);
  }
  void add(std::string_view name, std::string_view value) {
    begin(name);
    append_json_string(text_, value);
  }
  void add(std::string_view name, const std::optional<std::string>& value) {
    value ? add(name, std::string_view(*value)) : add_json(name, std::nullopt);
  }
  void add(std::string_view name, const std::vector<std::string>& values) {
    begin(name);
    text_ += '[';
    for (const std::string& value : values) {
      if (text_.back() != '[') text_ += ',';
      append_json_string(text_, value);
    }
    text_ += ']';
  }
  void add_json(std::string_view name, const std::optional<std::string>& json) {
    begin(name);
    text_ += json ? std::string_view(*json) : "null";
  }

 private:
  void begin(std::string_view name) {
    if (text_.back() != '{') text_ += ',';
    text_ += '"';
    text_ += name;
    text_ += "\":";
  }

  std::string& text_;
};

}  // namespace

std::vector<std::string> task_environment(const TaskInput& input, const char* const* inherited,
                                          const std::vector<std::string>& more) {
  Environment environment;
  environment.inherit(inherited);
  environment.add(more);

  environment.set("PULSE_JOB_ID", input.job_id);
  environment.set("PULSE_TOKEN", input.token);
  environment.set("PULSE_TASK", input.identifier);
  environment.set("PULSE_ATTEMPT", input.attempt);
  environment.set("PULSE_MAX_ATTEMPTS", input.max_attempts);
  environment.set("PULSE_RECOVERED", input.recovered.value_or(""));
  environment.set("PULSE_QUEUE", input.queue_name.value_or(""));
  environment.set("PULSE_PRIORITY", input.priority);
  environment.set("PULSE_SCHEDULED_FOR", input.scheduled_for.value_or(""));
  environment.set("PULSE_WORKER", input.worker_name);
  environment.set("PULSE_WORKER_ID", input.worker_id);
  environment.set("PULSE_FD", "3");
  if (!input.database.empty()) environment.set("PULSE_DATABASE", input.database);
  if (input.traceparent) environment.set("TRACEPARENT", *input.traceparent);

  environment.set("GRAPHILE_WORKER_PAYLOAD_FORMAT", "json");
  environment.set("GRAPHILE_WORKER_TASK_IDENTIFIER", input.identifier);
  environment.set("GRAPHILE_WORKER_JOB_ID", input.job_id);
  environment.set("GRAPHILE_WORKER_JOB_KEY", input.job_key.value_or(""));
  environment.set("GRAPHILE_WORKER_JOB_ATTEMPTS", input.attempt);
  environment.set("GRAPHILE_WORKER_JOB_MAX_ATTEMPTS", input.max_attempts);
  environment.set("GRAPHILE_WORKER_JOB_PRIORITY", input.priority);
  environment.set("GRAPHILE_WORKER_JOB_RUN_AT", input.run_at);
  return environment.take();
}

std::vector<std::string> process_environment(std::string_view task, const char* const* inherited,
                                             const std::vector<std::string>& more) {
  Environment environment;
  environment.inherit(inherited);
  environment.add(more);
  environment.set("PULSE_TASK", task);
  return environment.take();
}

std::vector<std::string> program_environment(ProgramVariables wish, const char* const* inherited,
                                             const std::vector<std::string>& more) {
  Environment environment;
  if (wish == ProgramVariables::all) {
    environment.inherit_all(inherited);
  } else {
    environment.inherit(inherited);
  }
  environment.add({"PYTHONUNBUFFERED=1"});
  environment.add(more);
  environment.add({"PULSE_FD=3"});
  return environment.take();
}

void append_task_stdin(std::string& text, const TaskInput& input, IdForm form) {
  text += "{\"payload\":";
  text += input.payload_json ? std::string_view(*input.payload_json) : "null";
  text += ",\"job\":{";
  JobMembers job(text);
  job.add_id("id", input.job_id, form);
  job.add_id("token", input.token, form);
  job.add("identifier", std::string_view(input.identifier));
  job.add("queue_name", input.queue_name);
  job.add("priority", input.priority);
  job.add("run_at", std::string_view(input.run_at));
  job.add("created_at", std::string_view(input.created_at));
  job.add("scheduled_for", input.scheduled_for);
  job.add("attempt", input.attempt);
  job.add("attempts", input.attempt);
  job.add("max_attempts", input.max_attempts);
  job.add("crashes", input.crashes);
  job.add("job_key", input.job_key);
  job.add("flags", input.flags);
  job.add("last_error", input.last_error);
  job.add("recovered", input.recovered);
  job.add_id("worker_id", input.worker_id, form);
  job.add("worker_name", std::string_view(input.worker_name));
  job.add_json("checkpoint", input.checkpoint_json);
  job.add_json("parents", input.parents_json);
  job.add("traceparent", input.traceparent);
  if (!input.database.empty()) job.add("database", std::string_view(input.database));
  if (form == IdForm::number) {
    job.add_text("id_text", input.job_id);
    job.add_text("token_text", input.token);
    job.add_text("worker_id_text", input.worker_id);
  }
  text += "}}\n";
}

std::string task_stdin(const TaskInput& input) {
  constexpr std::size_t kOther = 4096;
  std::string text;
  const auto size = [](const auto& value) { return value ? value->size() : 0; };
  text.reserve(size(input.payload_json) + size(input.checkpoint_json) + size(input.parents_json) +
               kOther);
  append_task_stdin(text, input);
  return text;
}

}  // namespace pulse
