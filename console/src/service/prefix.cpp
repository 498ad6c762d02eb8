#include "service/prefix.hpp"

namespace pulse::console {

std::string target_within(const std::string& prefix, const IsKnown& is_known,
                          const HttpRequest& request) {
  const std::string& target = request.target;
  const std::string_view path = std::string_view(target).substr(0, target.find('?'));
  if (prefix.empty() || !path.starts_with(prefix)) return target;
  const std::string_view rest = path.substr(prefix.size());
  if (!rest.empty() && rest.front() != '/') return target;
  const std::string_view within = rest.empty() ? "/" : rest;
  if (is_known(path)) {
    // A page of this server has the name of the prefix: /queue?name=mail. The address of the page
    // has a query.
    const bool is_bare = rest.empty() && path.size() < target.size();
    const bool is_taken = request.header("x-forwarded-prefix") == prefix;
    if (is_bare || is_taken || !is_known(within)) return target;
  }
  return std::string(within) + target.substr(path.size());
}

}  // namespace pulse::console
