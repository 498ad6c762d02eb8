// Where browsers find this server: the address of the proxy in front of it, and the path below
// which the proxy has put the server.
#pragma once

#include <string>
#include <string_view>
#include <variant>

namespace pulse::console {

// Of https://ops.example.com/queue. Each text is empty for a server that was given no address.
struct Origin {
  std::string text = {};    // https://ops.example.com, as a browser spells it in a header Origin
  std::string host = {};    // ops.example.com
  std::string prefix = {};  // /queue; empty at the root

  bool is_given() const { return !text.empty(); }
  bool is_secure() const { return text.starts_with("https:"); }
  std::string address() const { return text + prefix; }
};

// Or what is wrong with the address.
std::variant<Origin, std::string> parse_origin(std::string_view address);

}  // namespace pulse::console
