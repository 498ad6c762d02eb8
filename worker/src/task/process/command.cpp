#include "task/process/command.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <utility>

#include "base/text/exhaustion.hpp"

namespace pulse {
namespace {

bool is_blank(char character) {
  return std::string_view(" \t\n\r").find(character) != std::string_view::npos;
}

// The words of a command; nothing when a quote or a backslash has no end.
std::optional<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  bool is_in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char character = text[i];
    if (quote == 0 && is_blank(character)) {
      is_in_word = false;
      continue;
    }
    if (!std::exchange(is_in_word, true)) words.emplace_back();
    if (character == '\\' && quote != '\'') {
      if (++i == text.size()) return std::nullopt;
      words.back() += text[i];
    } else if (quote != 0 && character == quote) {
      quote = 0;
    } else if (quote == 0 && (character == '\'' || character == '"')) {
      quote = character;
    } else {
      words.back() += character;
    }
  }
  if (quote != 0) return std::nullopt;
  return words;
}

// The fault of the text, if there is one.
std::optional<std::string> take_words(std::string_view text, ProcessCommand& command) {
  auto words = split_words(text);
  if (!words) return " ends in the middle of a quoted word";
  if (words->empty() || words->front().empty()) return " has no command";
  command.words = std::move(*words);
  return std::nullopt;
}

bool is_program(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// The first program of this name in the folders of `path`; empty when there is none.
std::string find_in_path(const std::string& word, std::string_view path) {
  if (word.find('/') != std::string::npos) return word;
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    const std::string folder(path.substr(0, colon));
    const std::string candidate = (folder.empty() ? "." : folder) + '/' + word;
    if (is_program(candidate)) return candidate;
    if (colon == std::string_view::npos) break;
    path.remove_prefix(colon + 1);
  }
  return {};
}

TaskRefusal refusal_of(const std::string& path, int error) {
  return {is_exhaustion(error) ? TaskRefusal::Kind::exhausted : TaskRefusal::Kind::not_found,
          "cannot start " + path + ": " + std::generic_category().message(error)};
}

}  // namespace

std::variant<ProcessCommand, std::string> parse_process(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string shown = '\'' + std::string(text) + '\'';
  if (equals == std::string_view::npos) return shown + " is not NAME=COMMAND";
  ProcessCommand command;
  command.task = text.substr(0, equals);
  if (!TasksFolder::is_valid_name(command.task)) {
    return '\'' + command.task + "' is not a name for a task";
  }
  if (auto fault = take_words(text.substr(equals + 1), command)) return shown + *fault;
  return command;
}

std::variant<ProcessCommand, std::string> parse_program(std::string_view text) {
  ProcessCommand command;
  if (auto fault = take_words(text, command)) return '\'' + std::string(text) + '\'' + *fault;
  const std::string& program = command.words.front();
  command.task = program.substr(program.rfind('/') + 1);  // npos + 1 is the beginning
  return command;
}

std::optional<Program> find_program(const std::string& word, std::string_view path,
                                    TaskRefusal& refusal) {
  Program program;
  program.name = find_in_path(word, path);
  if (program.name.empty()) {
    refusal = {TaskRefusal::Kind::not_found, "cannot start " + word + ": it is not in PATH"};
    return std::nullopt;
  }
  // The minder executes a name in a folder, and the name must be the file itself and no link.
  const std::unique_ptr<char, decltype(&std::free)> resolved(
      realpath(program.name.c_str(), nullptr), &std::free);
  if (!resolved) {
    refusal = refusal_of(program.name, errno);
    return std::nullopt;
  }
  Executable& executable = program.executable;
  executable.path = resolved.get();
  if (!is_program(executable.path)) {
    refusal = {TaskRefusal::Kind::not_executable,
               "cannot start " + program.name + ": it is no executable file"};
    return std::nullopt;
  }
  const std::string folder = executable.path.substr(0, executable.path.rfind('/') + 1);
  executable.file.reset(open(executable.path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  executable.directory.reset(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  executable.folder.reset(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!executable.file.valid() || !executable.directory.valid() || !executable.folder.valid()) {
    refusal = refusal_of(program.name, errno);
    return std::nullopt;
  }
  return program;
}

}  // namespace pulse
