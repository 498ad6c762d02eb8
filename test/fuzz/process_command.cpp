// --process 'NAME=COMMAND'.
#include "task/process/command.hpp"

#include "target.hpp"

namespace pulse::fuzz {
namespace {

// In "…" a backslash takes the next character as it is.
std::string quoted(const std::string& word) {
  std::string text = "\"";
  for (const char character : word) {
    if (character == '"' || character == '\\') text += '\\';
    text += character;
  }
  return text + '"';
}

}  // namespace

void process_command(std::string_view input) {
  const std::string_view text = input.substr(0, input.find('\0'));
  const auto parsed = parse_process(text);
  if (const auto* problem = std::get_if<std::string>(&parsed)) {
    promise(!problem->empty(), "a problem is told");
    return;
  }
  const auto& command = std::get<ProcessCommand>(parsed);
  promise(!command.task.empty() && !command.words.empty(), "a command has a task and a program");
  std::string written = command.task + '=';
  for (const std::string& word : command.words) written += quoted(word) + ' ';
  const auto again = parse_process(written);
  promise(std::holds_alternative<ProcessCommand>(again), "a command written again is one");
  const auto& same = std::get<ProcessCommand>(again);
  promise(same.task == command.task && same.words == command.words, "and the same");
}

}  // namespace pulse::fuzz
