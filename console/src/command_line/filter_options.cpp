#include "command_line/filter_options.hpp"

#include "text/id.hpp"

namespace pulse::console {
CLI::Validator is_duration() {
  return {[](std::string& text) -> std::string {
            const auto interval = interval_of(text);
            if (!interval) return "'" + text + "' is not a duration such as 30s, 10min, 2h or 3d";
            text = *interval;
            return {};
          },
          "DURATION"};
}

CLI::Validator is_id() {
  return {[](const std::string& text) {
            return is_id_text(text) ? std::string() : "'" + text + "' is no id";
          },
          "ID"};
}

// An empty text comes from a variable that was not set: the empty text would be part of every
// error.
CLI::Validator is_not_empty() {
  return {[](const std::string& text) { return text.empty() ? "an empty text" : std::string(); },
          ""};
}

void add_filter_options(CLI::App& command, JobFilter& filter) {
  command
      .add_option("-s,--state", filter.states,
                  "ready, parked, running, completed, failed, quarantined, cancelled or expired; "
                  "several with commas")
      ->delimiter(',')
      ->option_text("STATE");
  command.add_option("-t,--task", filter.task, "Jobs of this task")
      ->check(is_not_empty())
      ->option_text("TASK");
  command.add_option("-q,--queue", filter.queue, "Jobs of this queue")
      ->check(is_not_empty())
      ->option_text("QUEUE");
  command.add_option("-k,--key", filter.key, "Jobs with this key")
      ->check(is_not_empty())
      ->option_text("KEY");
  command.add_option("-e,--error", filter.error, "Jobs whose last error contains this text")
      ->check(is_not_empty())
      ->option_text("TEXT");
  command
      .add_option("--error-line", filter.error_line,
                  "Jobs whose last error is this line, as failures prints it")
      ->check(is_not_empty())
      ->option_text("LINE");
  command.add_option("--older", filter.older_than, "Jobs added at least so long ago")
      ->transform(is_duration());
  command.add_option("--newer", filter.newer_than, "Jobs added within so long")
      ->transform(is_duration());
}

}  // namespace pulse::console
