#include "log_line.hpp"

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

namespace pulse {
namespace {

std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
  }
  return "error";
}

// UTC with milliseconds: 2026-01-31T23:59:59.123Z
std::string timestamp(std::chrono::system_clock::time_point at) {
  using std::chrono::duration_cast;
  const auto since_epoch = duration_cast<std::chrono::milliseconds>(at.time_since_epoch());
  const std::time_t seconds = static_cast<std::time_t>(since_epoch.count() / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string millis = std::to_string(since_epoch.count() % 1000);
  millis.insert(0, 3 - millis.size(), '0');
  return std::string(text.data(), length) + '.' + millis + 'Z';
}

// Bytes that are no UTF-8 become U+FFFD: a log line must stay readable by its reader's parser.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool reads_as_one_word(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    const bool plain = c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
    if (!plain) return false;
  }
  return true;
}

bool is_absent(const LogField& field) {
  const auto* text = std::get_if<std::string>(&field.value);
  return text != nullptr && text->empty();
}

std::string value_text(LogFormat format, const LogField& field) {
  if (const auto* number = std::get_if<std::int64_t>(&field.value)) return std::to_string(*number);
  const auto& text = std::get<std::string>(field.value);
  if (format == LogFormat::text && reads_as_one_word(text)) return text;
  return json_text(text);
}

}  // namespace

std::string log_line(LogFormat format, std::chrono::system_clock::time_point at, LogLevel level,
                     std::string_view event, std::initializer_list<LogField> fields) {
  std::string line;
  if (format == LogFormat::json) {
    line = "{\"time\":" + json_text(timestamp(at)) + ",\"level\":" + json_text(level_name(level)) +
           ",\"event\":" + json_text(event);
    for (const LogField& field : fields) {
      if (is_absent(field)) continue;
      line += ',' + json_text(field.key) + ':' + value_text(format, field);
    }
    return line + "}\n";
  }
  line = timestamp(at) + ' ' + std::string(level_name(level)) + ' ' + std::string(event);
  for (const LogField& field : fields) {
    if (is_absent(field)) continue;
    line += ' ' + std::string(field.key) + '=' + value_text(format, field);
  }
  return line + '\n';
}

}  // namespace pulse
