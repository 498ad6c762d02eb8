#include "executable/task_message.hpp"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "text/utf8.hpp"

namespace pulse {
namespace {

constexpr std::size_t kMaxDepth = 500;  // PostgreSQL reads JSON recursively; this is far within
constexpr std::size_t kMaxMessageBytes = std::size_t{8} * 1024;
constexpr std::size_t kMaxStageBytes = 128;

void append_escaped(std::string& text, std::string_view value) {
  constexpr std::string_view kHex = "0123456789abcdef";
  text += '"';
  for (const char character : value) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      text += '\\';
      text += character;
    } else if (code < 0x20) {
      text += "\\u00";
      text += kHex[code >> 4U];
      text += kHex[code & 0xFU];
    } else {
      text += character;
    }
  }
  text += '"';
}

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

// Reads a line value by value. A value of `checkpoint`, `result` and `payload` is written out again
// as it comes, so that numbers keep their digits and objects their order, which a tree would not.
// Returning false ends the reading: the line is malformed.
class LineReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  TaskMessage message;

  bool null() override {
    // For what is one value of a text or number, null says nothing new.
    if (is_field_value() && captured_ == nullptr) return true;
    return put_scalar("null");
  }
  bool boolean(bool value) override { return put_scalar(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    return put_number(static_cast<double>(value), std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return put_number(static_cast<double>(value), std::to_string(value));
  }
  bool number_float(number_float_t value, const string_t& digits) override {
    return put_number(value, digits);
  }
  bool string(string_t& value) override {
    if (is_field_value() && field_ == Field::message) {
      message.progress.message = storable_prefix(value, kMaxMessageBytes);
      return true;
    }
    if (is_field_value() && field_ == Field::stage) {
      message.progress.stage = storable_prefix(value, kMaxStageBytes);
      return true;
    }
    if (!may_put()) return false;
    separate();
    if (captured_ != nullptr) append_escaped(*captured_, value);
    return true;
  }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(std::size_t /*size*/) override { return start('{'); }
  bool end_object() override { return end('}'); }
  bool start_array(std::size_t /*size*/) override { return depth_ > 0 && start('['); }
  bool end_array() override { return end(']'); }

  bool key(string_t& name) override {
    if (depth_ == 1) {
      open_field(name);
    } else {
      separate();
      if (captured_ != nullptr) {
        append_escaped(*captured_, name);
        *captured_ += ':';
      }
      needs_comma_ = false;
    }
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  enum class Field { other, progress, message, stage, checkpoint, result, payload };

  bool is_field_value() const { return depth_ == 1; }

  // A value at this place: not outside the object, and not of a field that wants another kind.
  bool may_put() const {
    return depth_ > 1 || (depth_ == 1 && (field_ == Field::other || captured_ != nullptr));
  }

  void open_field(const std::string& name) {
    needs_comma_ = false;
    captured_ = nullptr;
    field_ = Field::other;
    if (name == "progress") field_ = Field::progress;
    if (name == "message") field_ = Field::message;
    if (name == "stage") field_ = Field::stage;
    if (name == "checkpoint") {
      field_ = Field::checkpoint;
      captured_ = &message.progress.checkpoint.emplace();
    }
    if (name == "result") {
      field_ = Field::result;
      captured_ = &message.result.emplace();
    }
    if (name == "payload") {
      field_ = Field::payload;
      captured_ = &message.payload.emplace();
    }
  }

  void separate() {
    if (captured_ != nullptr && needs_comma_) *captured_ += ',';
    needs_comma_ = true;
  }

  bool put_scalar(std::string_view text) {
    if (!may_put()) return false;
    separate();
    if (captured_ != nullptr) *captured_ += text;
    return true;
  }

  bool put_number(double value, std::string_view digits) {
    if (!is_field_value() || field_ != Field::progress) return put_scalar(digits);
    if (!(value >= 0.0 && value <= 1.0)) return false;
    message.progress.fraction = value;
    return true;
  }

  bool start(char bracket) {
    if (depth_ > 0) {
      if (!may_put()) return false;
      separate();
      if (captured_ != nullptr) *captured_ += bracket;
      needs_comma_ = false;
    }
    return ++depth_ <= kMaxDepth;
  }

  bool end(char bracket) {
    --depth_;
    if (depth_ > 0 && captured_ != nullptr) *captured_ += bracket;
    needs_comma_ = true;
    return true;
  }

  std::size_t depth_ = 0;
  Field field_ = Field::other;
  std::string* captured_ = nullptr;  // into `message`
  bool needs_comma_ = false;
};

}  // namespace

std::optional<TaskMessage> parse_task_message(std::string_view line) {
  LineReader reader;
  if (!nlohmann::json::sax_parse(line.begin(), line.end(), &reader)) return std::nullopt;
  if (reader.message.payload == "null") reader.message.payload.reset();
  return std::move(reader.message);
}

}  // namespace pulse
