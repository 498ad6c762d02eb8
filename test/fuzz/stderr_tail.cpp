// Standard error, of which the end is stored as text.
#include "base/text/stderr_tail.hpp"

#include <algorithm>

#include "base/text/utf8.hpp"
#include "target.hpp"

namespace pulse::fuzz {
namespace {

std::string tail_of(std::string_view input, std::size_t chunk, std::size_t limit) {
  StderrTail tail;
  for (; !input.empty(); input.remove_prefix(std::min(chunk, input.size()))) {
    tail.feed(input.substr(0, chunk));
  }
  return tail.text(limit);
}

void check_storable(std::string_view text, std::size_t limit) {
  promise(text.size() <= limit, "the text is cut");
  promise(is_storable(text), "the text can be stored");
}

}  // namespace

void stderr_tail(std::string_view input) {
  constexpr std::size_t kShort = 16;
  for (const std::size_t limit : {kShort, StderrTail::kMaxBytes}) {
    const std::string whole = tail_of(input, std::max<std::size_t>(input.size(), 1), limit);
    check_storable(whole, limit);
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{5}}) {
      check_storable(tail_of(input, chunk, limit), limit);
    }
  }
}

}  // namespace pulse::fuzz
