#include "task_environment.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace pulse {
namespace {

// The kernel refuses to execute anything with a longer variable, and one job key must not make its
// job impossible to run. What is left out here stands on stdin.
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

template <typename Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::vector<std::string> task_environment(const TaskInput& input, const char* const* inherited) {
  Environment environment;
  environment.inherit(inherited);

  environment.set("PULSE_JOB_ID", input.job_id);
  environment.set("PULSE_TOKEN", input.token);
  environment.set("PULSE_TASK", input.identifier);
  environment.set("PULSE_ATTEMPT", input.attempt);
  environment.set("PULSE_MAX_ATTEMPTS", input.max_attempts);
  environment.set("PULSE_RECOVERED", input.recovered.value_or(""));
  environment.set("PULSE_QUEUE", input.queue_name.value_or(""));
  environment.set("PULSE_PRIORITY", input.priority);
  environment.set("PULSE_WORKER", input.worker_name);
  environment.set("PULSE_WORKER_ID", input.worker_id);
  environment.set("PULSE_FD", "3");

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

std::string task_stdin(const TaskInput& input) {
  const nlohmann::ordered_json job = {
      {"id", input.job_id},
      {"token", input.token},
      {"identifier", input.identifier},
      {"queue_name", or_null(input.queue_name)},
      {"priority", input.priority},
      {"run_at", input.run_at},
      {"created_at", input.created_at},
      {"attempt", input.attempt},
      {"attempts", input.attempt},
      {"max_attempts", input.max_attempts},
      {"crashes", input.crashes},
      {"job_key", or_null(input.job_key)},
      {"flags", input.flags},
      {"last_error", or_null(input.last_error)},
      {"recovered", or_null(input.recovered)},
      {"worker_id", input.worker_id},
      {"worker_name", input.worker_name},
  };
  std::string text = "{\"payload\":";
  text += input.payload_json.value_or("null");
  text += ",\"job\":";
  text += job.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.pop_back();  // the brace of `job`, so that the checkpoint keeps its own text too
  text += ",\"checkpoint\":";
  text += input.checkpoint_json.value_or("null");
  text += "}}\n";
  return text;
}

}  // namespace pulse
