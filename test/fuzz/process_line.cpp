// What a persistent process says, line by line.
#include "task/process/line.hpp"

#include <nlohmann/json.hpp>

#include "base/text/json_grammar.hpp"
#include "base/text/utf8.hpp"
#include "target.hpp"

namespace pulse::fuzz {
namespace {

void check_end(const ExecutionEnd& end) {
  constexpr std::size_t kMaxError = 8192;
  promise(end.error.size() <= kMaxError, "an error is cut");
  promise(is_storable(end.error), "an error can be stored");
  if (end.again_in) promise(end.again_in->count() >= 0, "a delay is not negative");
  if (end.result) promise(is_json(*end.result), "a result is JSON");
  if (end.checkpoint) promise(is_json(*end.checkpoint), "a checkpoint is JSON");
}

// What another reader understands; it also takes names that are spelled with escapes.
void check_against_tree(std::string_view line, const ProcessLine& parsed) {
  if (line.find('\\') != std::string_view::npos) return;
  const auto tree = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (tree.is_discarded()) return;  // a number that is too large for it
  if (parsed.takes) {
    promise(tree.at("takes") == *parsed.takes, "the number of jobs is what was said");
    return;
  }
  promise(tree.at("id") == parsed.job_id, "the job is the one that was said");
  promise(parsed.end.has_value() ==
              (tree.contains("error") || tree.contains("snooze") || tree.contains("result")),
          "an end is one");
}

}  // namespace

void process_line(std::string_view input) {
  const std::string_view line = input.substr(0, input.find('\n'));
  std::string why;
  const auto parsed = parse_process_line(line, why);
  if (!parsed) {
    promise(!why.empty(), "a refusal says why");
    return;
  }
  promise(may_mean_answer(line), "what means something may mean an answer");
  constexpr std::int64_t kMaxAtOnce = 10'000;
  if (parsed->takes) {
    promise(*parsed->takes >= 1 && *parsed->takes <= kMaxAtOnce, "a number of jobs is in range");
  }
  if (parsed->end) check_end(*parsed->end);
  check_against_tree(line, *parsed);
}

}  // namespace pulse::fuzz
