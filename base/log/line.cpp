#include "base/log/line.hpp"

#include <array>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/text/inert.hpp"

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

constexpr std::string_view kFaint = "\x1b[2m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kCyan = "\x1b[36m";
constexpr std::string_view kPlain = "\x1b[0m";

// The end of a job by the outcome, at any level.
std::string_view colour_of(LogLevel level, std::string_view event) {
  if (event == "completed") return kGreen;
  if (event == "failed") return kRed;
  if (event == "cancelled") return kYellow;
  switch (level) {
    case LogLevel::debug: return kFaint;
    case LogLevel::info: return kCyan;
    case LogLevel::warning: return kYellow;
    case LogLevel::error: return kRed;
  }
  return kRed;
}

std::string coloured(LogColour wanted, std::string_view colour, const std::string& text) {
  if (wanted == LogColour::none) return text;
  return std::string(colour) + text + std::string(kPlain);
}

// UTC with milliseconds: 2026-01-31T23:59:59.123Z
std::string timestamp(std::chrono::system_clock::time_point at) {
  // Rounded down, so that a clock before 1970 has no negative part of a second either.
  const auto whole = std::chrono::floor<std::chrono::seconds>(at);
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(at - whole);
  const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string millis = std::to_string(rest.count());
  millis.insert(0, 3 - millis.size(), '0');
  return std::string(text.data(), length) + '.' + millis + 'Z';
}

// Bytes outside of UTF-8 become U+FFFD: a log line must stay readable for a parser.
std::string json_text(std::string_view text) {
  return inert_json(
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
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

// 1500, 0.213; below zero, -0.213: how long something is overdue.
std::string milliseconds_text(std::chrono::nanoseconds time) {
  const auto exact = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  const std::int64_t micros = std::abs(exact);
  std::string text(exact < 0 ? "-" : "");
  text += std::to_string(micros / 1000);
  if (micros % 1000 == 0) return text;
  std::string rest = std::to_string(micros % 1000);
  rest.insert(0, 3 - rest.size(), '0');
  rest.erase(rest.find_last_not_of('0') + 1);
  return text + '.' + rest;
}

std::string value_text(LogFormat format, const LogField& field) {
  if (const auto* number = std::get_if<std::int64_t>(&field.value)) return std::to_string(*number);
  if (const auto* time = std::get_if<std::chrono::nanoseconds>(&field.value)) {
    return milliseconds_text(*time);
  }
  const auto& text = std::get<std::string>(field.value);
  if (format == LogFormat::text && reads_as_one_word(text)) return text;
  return json_text(text);
}

}  // namespace

std::string log_line(LogStyle style, std::chrono::system_clock::time_point at, LogLevel level,
                     std::string_view event, LogFields fields) {
  std::string line;
  if (style.format == LogFormat::json) {
    line = "{\"time\":" + json_text(timestamp(at)) + ",\"level\":" + json_text(level_name(level)) +
           ",\"event\":" + json_text(event);
    for (const LogField& field : fields) {
      if (is_absent(field)) continue;
      line += ',' + json_text(field.key) + ':' + value_text(style.format, field);
    }
    return line + "}\n";
  }
  line = coloured(style.colour, kFaint, timestamp(at)) + ' ' +
         coloured(style.colour, colour_of(level, event),
                  std::string(level_name(level)) + ' ' + std::string(event));
  for (const LogField& field : fields) {
    if (is_absent(field)) continue;
    line += ' ' + std::string(field.key) + '=' + value_text(style.format, field);
  }
  return line + '\n';
}

}  // namespace pulse
