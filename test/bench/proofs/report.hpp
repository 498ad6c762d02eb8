// What a proof says: one line per claim that holds or is broken, notes with figures beside them.
#pragma once

#include <string>

namespace bench {

class Report {
 public:
  // Prints "pass" or "FAIL" and the text; a broken one makes the whole proof fail.
  void check(bool holds, const std::string& text);
  // A figure that nothing depends on.
  void note(const std::string& text);
  bool is_broken() const { return broken_; }

 private:
  bool broken_ = false;
};

// printf into a string.
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

}  // namespace bench
