// Where a command's text goes: straight to standard output, or through a pager.
#pragma once

#include <string>

#include "output/look.hpp"

namespace pulse::console {

class Output {
 public:
  Output(Look look, bool may_page) : look_(look), may_page_(may_page) {}

  const Look& look() const { return look_; }

  // On a terminal, a text with more lines than the terminal goes through PAGER, as in psql.
  void print(const std::string& text) const;

 private:
  Look look_;
  bool may_page_;
};

}  // namespace pulse::console
