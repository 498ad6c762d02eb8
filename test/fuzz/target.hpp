// What a parser is given by a stranger. Each target takes any bytes and stops the process when one
// of the parser's promises is broken.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace pulse::fuzz {

using Target = void (*)(std::string_view input);

void array_literal(std::string_view input);
void command_line(std::string_view input);
void connection_options(std::string_view input);
void crontab(std::string_view input);
void duration(std::string_view input);
void http_address(std::string_view input);
void json_members(std::string_view input);
void process_command(std::string_view input);
void process_line(std::string_view input);
void query_result(std::string_view input);
void stderr_tail(std::string_view input);
void task_message(std::string_view input);
void variables(std::string_view input);

// Not assert(): that is left out of a release.
inline void promise(bool is_kept, const char* what) {
  if (is_kept) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

// Cut at each `separator`; at least one piece.
inline std::vector<std::string_view> pieces_of(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

}  // namespace pulse::fuzz
