// Where a command's text goes: straight to standard output, or through a pager.
#pragma once

#include <string>

#include "output/look.hpp"

namespace pulse::console {

class Output {
 public:
  Output(Look look, bool may_page) : look_(look), may_page_(may_page) {}

  const Look& look() const { return look_; }

  // On a terminal, what has more lines than it goes through PAGER, as psql does it.
  void print(const std::string& text) const;

 private:
  Look look_;
  bool may_page_;
};

}  // namespace pulse::console
