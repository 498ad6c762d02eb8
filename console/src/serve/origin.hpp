// Where browsers find this server: the address of the proxy in front, and the path below which the
// proxy has put it.
#pragma once

#include <string>
#include <string_view>
#include <variant>

namespace pulse::console {

// The parts of https://ops.example.com/queue. Each text is empty for a server that has no address.
struct Origin {
  std::string text = {};    // https://ops.example.com, as a browser spells the header Origin
  std::string host = {};    // ops.example.com
  std::string prefix = {};  // /queue; empty at the root

  bool is_given() const { return !text.empty(); }
  bool is_secure() const { return text.starts_with("https:"); }
  std::string address() const { return text + prefix; }
};

// Returns the origin, or a text that names the fault of the address.
std::variant<Origin, std::string> parse_origin(std::string_view address);

}  // namespace pulse::console
