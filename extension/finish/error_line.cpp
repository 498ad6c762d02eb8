// The line of an error that tells most: the last line that is neither blank nor indented. A
// traceback of Python ends with this line; in errors of Java, Node and Ruby the message, or the
// last cause, stands above the frames. Lists and operations find jobs by the line, among thousands
// of errors a call, so C reads them: a regular expression takes a hundred times as long.
#include "server/postgres.hpp"

namespace pulse {
namespace {

constexpr int kMaxCharacters = 200;

struct Line {
  const char* begin;
  const char* end;
};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// The line that ends at `end`, without the white space behind its words.
Line line_before(const char* begin, const char* end) {
  const char* first = end;
  while (first > begin && first[-1] != '\n') first--;
  while (end > first && is_space(end[-1])) end--;
  return {first, end};
}

Line telling_line(const char* begin, const char* end) {
  Line last = {begin, begin};
  while (true) {
    Line line = line_before(begin, end);
    bool is_blank = line.begin == line.end;
    if (!is_blank && !is_space(*line.begin)) return line;
    if (!is_blank && last.begin == last.end) last = line;
    if (line.begin == begin) return last;
    end = line.begin - 1;
  }
}

}  // namespace
}  // namespace pulse

PULSE_FUNCTION(pulse_error_line) {
  text* error = PG_GETARG_TEXT_PP(0);
  const char* begin = VARDATA_ANY(error);
  pulse::Line line = pulse::telling_line(begin, begin + VARSIZE_ANY_EXHDR(error));
  text* whole = cstring_to_text_with_len(line.begin, static_cast<int>(line.end - line.begin));
  PG_RETURN_DATUM(
      DirectFunctionCall2(text_left, PointerGetDatum(whole), Int32GetDatum(pulse::kMaxCharacters)));
}
