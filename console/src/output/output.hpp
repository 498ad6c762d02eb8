// Where a command's text goes: straight to standard output, or through a pager.
#pragma once

#include <string>

#include "output/style.hpp"

namespace pulse::console {

class Output {
 public:
  Output(Style style, bool may_page) : style_(style), may_page_(may_page) {}

  const Style& style() const { return style_; }

  // On a terminal, a text with more lines than the terminal goes through PAGER, as in psql.
  void print(const std::string& text) const;

 private:
  Style style_;
  bool may_page_;
};

}  // namespace pulse::console
