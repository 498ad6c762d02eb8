#include "base/http/host.hpp"

#include <arpa/inet.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace pulse {
namespace {

constexpr std::string_view kDigits = "0123456789";

bool is_address(int family, const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(family, text.c_str(), bytes.data()) == 1;
}

bool is_port(std::string_view text) {
  return text.empty() ||
         (text.front() == ':' && text.find_first_not_of(kDigits, 1) == std::string_view::npos);
}

}  // namespace

std::string name_in_host(std::string_view host) {
  const bool is_bracketed = host.starts_with('[');
  const std::size_t end = is_bracketed ? host.find(']') : std::min(host.find(':'), host.size());
  if (end == std::string_view::npos) return {};
  std::string name(host.substr(is_bracketed ? 1 : 0, is_bracketed ? end - 1 : end));
  if (!is_port(host.substr(is_bracketed ? end + 1 : end))) return {};
  if (is_bracketed && !is_address(AF_INET6, name)) return {};
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

bool is_name_of_server(const std::string& name, const std::vector<std::string>& names) {
  if (name == "localhost" || is_address(AF_INET, name) || is_address(AF_INET6, name)) return true;
  return std::any_of(names.begin(), names.end(), [&](const std::string& each) {
    return !name.empty() && strcasecmp(each.c_str(), name.c_str()) == 0;
  });
}

}  // namespace pulse
