#include "task/executable/variables.hpp"

#include <algorithm>
#include <utility>

namespace pulse {
namespace {

constexpr std::string_view kOuterBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kOuterBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kOuterBlanks) + 1);
}

// The value of a line, or nothing where a quote has no end or text stands behind the quote.
std::optional<std::string> value_of(std::string_view text) {
  if (text.empty() || (text.front() != '"' && text.front() != '\'')) return std::string(text);
  const char quote = text.front();
  std::string value;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) {
      return i + 1 == text.size() ? std::optional(std::move(value)) : std::nullopt;
    }
    if (quote == '"' && text[i] == '\\' && ++i == text.size()) return std::nullopt;
    value += text[i];
  }
  return std::nullopt;
}

// The fault of the line, if it has one.
std::optional<std::string> take_line(std::string_view line, Variables& variables) {
  constexpr std::string_view kExport = "export ";
  line = trimmed(line);
  if (line.empty() || line.front() == '#') return std::nullopt;
  if (line.starts_with(kExport)) line = trimmed(line.substr(kExport.size()));
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return "is not NAME=value";
  const std::string_view name = line.substr(0, equals);
  if (auto problem = name_problem(name))
    return "names '" + std::string(name) + "', which " + *problem;
  const auto value = value_of(trimmed(line.substr(equals + 1)));
  if (!value) return "has a quote without an end, or something behind it";
  if (value->find('\0') != std::string::npos) return "has a NUL";
  variables.push_back(std::string(name) + '=' + *value);
  return std::nullopt;
}

// The variables of the file, or the fault of the file.
std::variant<Variables, FileRefusal> read_variables(const std::string& path) {
  const auto read = try_trusted_file(path);
  if (const auto* refusal = std::get_if<FileRefusal>(&read)) return *refusal;
  auto parsed = parse_variables(std::get<FileText>(read).text);
  if (auto* problem = std::get_if<std::string>(&parsed)) return FileRefusal{path + ": " + *problem};
  return std::get<Variables>(std::move(parsed));
}

}  // namespace

std::optional<std::string> name_problem(std::string_view name) {
  const auto is_plain = [](char character) {
    return (character >= 'A' && character <= 'Z') || (character >= 'a' && character <= 'z') ||
           (character >= '0' && character <= '9') || character == '_';
  };
  const bool is_name = !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
                       std::all_of(name.begin(), name.end(), is_plain);
  if (!is_name) return "is not the name of a variable";
  if (name.starts_with("PULSE_") || name.starts_with("GRAPHILE_WORKER_")) {
    return "tells tasks of their jobs";
  }
  return std::nullopt;
}

std::variant<Variables, std::string> parse_variables(std::string_view text) {
  Variables variables;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto problem = take_line(text.substr(0, end), variables)) {
      return "line " + std::to_string(number) + ' ' + *problem;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return variables;
}

TaskVariables::TaskVariables(const std::vector<std::string>& names, std::string file,
                             const char* const* inherited)
    : file_(std::move(file)) {
  for (; inherited != nullptr && *inherited != nullptr; ++inherited) {
    const std::string_view variable = *inherited;
    const std::string_view name = variable.substr(0, variable.find('='));
    if (std::find(names.begin(), names.end(), name) != names.end()) passed_.emplace_back(variable);
  }
}

std::optional<FileRefusal> TaskVariables::read_file() {
  if (file_.empty()) return std::nullopt;
  auto read = read_variables(file_);
  if (auto* refusal = std::get_if<FileRefusal>(&read)) return std::move(*refusal);
  filed_ = std::get<Variables>(std::move(read));
  return std::nullopt;
}

Variables TaskVariables::list() const {
  Variables all = passed_;
  all.insert(all.end(), filed_.begin(), filed_.end());
  return all;
}

}  // namespace pulse
