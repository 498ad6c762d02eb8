#include "serve/router.hpp"

#include "base/text/percent.hpp"
#include "text/id.hpp"

namespace pulse::console {
namespace {

// Paths that no browser asks for, so that a page would be no answer.
bool is_for_programs(std::string_view path) {
  return path.starts_with("/v1/") || path == "/metrics" || path == "/healthz";
}

bool is_name(std::string_view part) { return part.starts_with('{') && part.ends_with('}'); }

// The next part of a path; `path` keeps the rest.
std::string_view next_part(std::string_view& path) {
  const std::string_view part = path.substr(0, path.find('/'));
  path.remove_prefix(part.size());
  return part;
}

// The parameters, if the path is one of the pattern.
std::optional<std::map<std::string, std::string>> match(std::string_view pattern,
                                                        std::string_view path) {
  std::map<std::string, std::string> parameters;
  while (!pattern.empty() && !path.empty()) {
    if (pattern.front() != '/' || path.front() != '/') return std::nullopt;
    pattern.remove_prefix(1);
    path.remove_prefix(1);
    const std::string_view wanted = next_part(pattern);
    const std::string_view part = next_part(path);
    if (!is_name(wanted)) {
      if (wanted != part) return std::nullopt;
      continue;
    }
    const auto value = percent_decoded(part, false);
    if (!value || value->empty()) return std::nullopt;
    const std::string_view name = wanted.substr(1, wanted.size() - 2);
    if (name == "id" && !is_id_text(*value)) return std::nullopt;
    parameters[std::string(name)] = *value;
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return parameters;
}

}  // namespace

const std::string& Request::parameter(const std::string& name) const {
  static const std::string kNone;
  const auto found = parameters.find(name);
  return found == parameters.end() ? kNone : found->second;
}

void Router::add(std::string method, std::string pattern, Need need, Handler handler, Pool pool) {
  routes_.push_back({.method = std::move(method),
                     .pattern = std::move(pattern),
                     .need = need,
                     .handler = std::move(handler),
                     .pool = pool});
}

void Router::add_stream(std::string pattern, Need need, std::chrono::milliseconds interval,
                        Producer producer) {
  routes_.push_back({.method = "GET",
                     .pattern = std::move(pattern),
                     .need = need,
                     .producer = std::move(producer),
                     .interval = interval});
}

Router::Found Router::find(std::string_view method, std::string_view path) const {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  Found found;
  for (const Route& route : routes_) {
    auto parameters = match(route.pattern, path);
    if (!parameters) continue;
    found.is_known = true;
    if (route.method == wanted) {
      found.route = &route;
      found.parameters = std::move(*parameters);
      return found;
    }
    if (!found.allowed.empty()) found.allowed += ", ";
    found.allowed += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  return found;
}

Response Router::error(const Request& request, const Problem& problem) const {
  const bool is_page = error_page && !is_for_programs(request.path);
  return is_page ? error_page(request, problem) : problem_response(problem);
}

}  // namespace pulse::console
