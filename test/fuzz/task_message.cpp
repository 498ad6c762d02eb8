// Lines of JSON on descriptor 3, cut anywhere by the pipe.
#include "task/executable/message.hpp"

#include <algorithm>
#include <string>

#include "base/text/json_grammar.hpp"
#include "base/text/utf8.hpp"
#include "target.hpp"
#include "task/executable/output.hpp"

namespace pulse::fuzz {
namespace {

void check_text(const std::optional<std::string>& text, std::size_t limit) {
  if (!text) return;
  promise(text->size() <= limit, "a text is cut");
  promise(is_storable(*text), "a text can be stored");
}

// JSON that stays as it is when it is read again, and is a part of what was said.
void check_json(const std::optional<std::string>& json, const char* key, std::size_t said) {
  if (!json) return;
  promise(is_json(*json), "a value is JSON");
  promise(json->size() <= said, "a value does not grow");
  promise(json->find('\n') == std::string::npos, "a value is one line");
  const auto again = parse_task_message("{\"" + std::string(key) + "\":" + *json + "}");
  promise(again.has_value(), "a value can be read again");
  const auto& same = again->result ? again->result : again->progress.checkpoint;
  promise(same == json, "a value read again is the same");
}

void check_progress(const TaskProgress& progress, std::size_t said) {
  if (progress.fraction) {
    promise(*progress.fraction >= 0 && *progress.fraction <= 1, "a fraction is one");
  }
  constexpr std::size_t kMaxMessage = 8192;
  constexpr std::size_t kMaxStage = 128;
  check_text(progress.message, kMaxMessage);
  check_text(progress.stage, kMaxStage);
  check_json(progress.checkpoint, "checkpoint", said);
}

struct Heard {
  TaskProgress progress;
  std::optional<std::string> result;
  std::size_t dropped_lines = 0;
};

Heard hear(std::string_view input, std::size_t chunk) {
  TaskOutput output;
  for (; !input.empty(); input.remove_prefix(std::min(chunk, input.size()))) {
    output.feed(input.substr(0, chunk));
  }
  output.finish();
  return {output.take_rest().value_or(TaskProgress{}), output.result(), output.dropped_lines()};
}

}  // namespace

void task_message(std::string_view input) {
  const Heard whole = hear(input, input.size());
  check_progress(whole.progress, input.size());
  check_json(whole.result, "result", input.size());
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}}) {
    const Heard cut = hear(input, chunk);
    promise(cut.progress.fraction == whole.progress.fraction &&
                cut.progress.message == whole.progress.message &&
                cut.progress.stage == whole.progress.stage &&
                cut.progress.checkpoint == whole.progress.checkpoint &&
                cut.result == whole.result && cut.dropped_lines == whole.dropped_lines,
            "where the pipe cuts does not matter");
  }
}

}  // namespace pulse::fuzz
