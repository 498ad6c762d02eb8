#include "serve/origin.hpp"

#include <algorithm>
#include <cctype>

#include "base/http/host.hpp"
#include "text/lower.hpp"

namespace pulse::console {
namespace {

constexpr const char* kShape = "is no address such as https://ops.example.com/queue";

bool has_only(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || more.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// In a header Origin a browser leaves out the port that the scheme has anyway.
std::string_view without_usual_port(std::string_view host, bool is_secure) {
  const std::string_view usual = is_secure ? ":443" : ":80";
  if (host.ends_with(usual)) host.remove_suffix(usual.size());
  return host;
}

// A path that browsers neither encode nor shorten.
bool is_prefix(std::string_view path) {
  if (!has_only(path, "/-_~.") || path.find("//") != std::string_view::npos) return false;
  const std::string closed = std::string(path) + '/';
  return closed.find("/./") == std::string::npos && closed.find("/../") == std::string::npos;
}

}  // namespace

std::variant<Origin, std::string> parse_origin(std::string_view address) {
  const std::string problem = std::string(address) + ' ' + kShape;
  const std::size_t scheme_end = address.find("://");
  if (scheme_end == std::string_view::npos) return problem;
  const std::string scheme = lower(address.substr(0, scheme_end));
  if (scheme != "https" && scheme != "http") return problem;
  std::string_view rest = address.substr(scheme_end + 3);
  const std::string host = lower(rest.substr(0, rest.find('/')));
  rest.remove_prefix(host.size());
  if (!has_only(host, ".-_:[]")) return problem;
  while (rest.ends_with('/')) rest.remove_suffix(1);
  if (!is_prefix(rest)) return problem;
  Origin origin;
  origin.host = name_in_host(host);
  if (origin.host.empty() || host.ends_with(':')) return problem;
  origin.text = scheme + "://" + std::string(without_usual_port(host, scheme == "https"));
  origin.prefix = rest;
  return origin;
}

}  // namespace pulse::console
