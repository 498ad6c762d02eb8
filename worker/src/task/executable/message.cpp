#include "task/executable/message.hpp"

#include <nlohmann/json.hpp>

#include "base/text/json_members.hpp"
#include "base/text/utf8.hpp"

namespace pulse {
namespace {

constexpr std::size_t kMaxMessageDepth =
    500;  // PostgreSQL reads JSON recursively; this is far within
constexpr std::size_t kMaxMessageBytes = std::size_t{8} * 1024;
constexpr std::size_t kMaxStageBytes = 128;

// Text for a text column, which cannot hold U+0000.
std::string storable_prefix(std::string_view value, std::size_t limit) {
  std::string text;
  for (const char character : utf8_prefix(value, limit)) {
    if (character == '\0') {
      text += "\xEF\xBF\xBD";
    } else {
      text += character;
    }
  }
  return std::string(utf8_prefix(text, limit));
}

bool take_text(std::optional<std::string>& text, std::string_view value, std::size_t limit) {
  if (value.front() != '"') return false;
  text = storable_prefix(json_string_value(value), limit);
  return true;
}

bool take_fraction(std::optional<double>& fraction, std::string_view value) {
  const auto number = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  if (!number.is_number()) return false;
  fraction = number.get<double>();
  return *fraction >= 0.0 && *fraction <= 1.0;
}

// False for a value of another kind than the field wants. For a field of text or number, null says
// nothing new. Other values stay as written.
bool take_field(TaskMessage& message, std::string_view key, std::string_view value) {
  TaskProgress& progress = message.progress;
  if (key == "checkpoint") progress.checkpoint = value;
  if (key == "result") message.result = value;
  if (key == "payload") message.payload = value;
  if (value == "null") return true;
  if (key == "progress") return take_fraction(progress.fraction, value);
  if (key == "message") return take_text(progress.message, value, kMaxMessageBytes);
  if (key == "stage") return take_text(progress.stage, value, kMaxStageBytes);
  return true;
}

}  // namespace

std::optional<TaskMessage> parse_task_message(std::string_view line) {
  if (!is_json_object(line, kMaxMessageDepth)) return std::nullopt;
  TaskMessage message;
  std::string_view key;
  std::string_view value;
  for (JsonMembers members(line); members.next(key, value);) {
    if (!take_field(message, key, value)) return std::nullopt;
  }
  if (message.payload == "null") message.payload.reset();
  return message;
}

}  // namespace pulse
