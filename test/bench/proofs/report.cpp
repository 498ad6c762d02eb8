#include "report.hpp"

#include <cstdarg>
#include <cstdio>
#include <vector>

namespace bench {

void Report::check(bool holds, const std::string& text) {
  broken_ = broken_ || !holds;
  std::printf("%s  %s\n", holds ? "pass" : "FAIL", text.c_str());
  std::fflush(stdout);
}

void Report::note(const std::string& text) {
  std::printf("      %s\n", text.c_str());
  std::fflush(stdout);
}

std::string format(const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  va_list again;
  va_copy(again, arguments);
  std::vector<char> buffer(
      static_cast<std::size_t>(std::vsnprintf(nullptr, 0, pattern, arguments)) + 1);
  std::vsnprintf(buffer.data(), buffer.size(), pattern, again);
  va_end(again);
  va_end(arguments);
  return buffer.data();
}

}  // namespace bench
