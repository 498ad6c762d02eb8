#include "command_line/console.hpp"

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/text/inert.hpp"
#include "output/table.hpp"

namespace pulse::console {

void Console::print_json(const std::string& document) const { output.print(inert_json(document)); }

void Console::print_list(const Columns& columns, const QueryResult& rows) const {
  if (taken != nullptr) {
    taken->columns = columns;
    taken->rows = rows;
    return;
  }
  if (options.is_json) return print_json(json_list(columns, rows));
  output.print(table(columns, rows, output.style()));
}

void Console::print_list(const List& list, const QueryResult& rows) const {
  print_list(list.columns, rows);
  const std::string end = word_of_end(list, rows);
  if (taken != nullptr)
    taken->end = end;
  else if (!end.empty())
    std::fprintf(stderr, "pulse: %s\n", end.c_str());
}

void Console::print_done(const std::string& words, const std::string& document) const {
  if (options.is_json) return print_json(document + '\n');
  output.print(words + '\n');
}

bool is_confirmed(const Console& console, const std::string& question) {
  if (console.options.is_agreed) return true;
  if (isatty(STDIN_FILENO) != 1) {
    std::fputs("pulse: nothing was changed: there is no terminal to ask on; --yes agrees\n",
               stderr);
    return false;
  }
  std::fprintf(stderr, "%s [y/N] ", question.c_str());
  std::string answer;
  if (std::getline(std::cin, answer) && (answer == "y" || answer == "yes")) return true;
  std::fputs("Nothing was changed.\n", stderr);
  return false;
}

}  // namespace pulse::console
