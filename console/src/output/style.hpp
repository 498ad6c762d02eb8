// How printed text may be styled on its output.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace pulse::console {

enum class Tint { none, strong, faint, good, busy, warning, bad };

struct Style {
  bool is_terminal = false;
  bool has_colours = false;
  std::size_t columns = 0;  // 0: as many as a line needs
  std::size_t rows = 0;

  using Variable = std::function<const char*(const char* name)>;
  // The style of standard output. Colours only on a terminal that knows colours, and not with
  // NO_COLOR.
  static Style of_stdout(const Variable& variable);

  std::string tinted(std::string_view text, Tint tint) const;
};

// Of a state of a job, a worker, a schedule, a flow or a node.
Tint tint_of_state(std::string_view state);

}  // namespace pulse::console
