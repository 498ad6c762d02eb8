#include "html/url.hpp"

#include "base/text/percent.hpp"

namespace pulse::console {
namespace {

std::string& prefix() {
  static std::string prefix;
  return prefix;
}

}  // namespace

void set_url_prefix(std::string text) { prefix() = std::move(text); }

// A place on the page itself has no path.
std::string Url::address() const { return path_.empty() ? text() : prefix() + text(); }

Url Url::part(std::string_view text) const {
  Url longer = *this;
  longer.rest_ += (path_.ends_with('/') && rest_.empty() ? "" : "/") + percent_encoded(text);
  return longer;
}

Url Url::to_place(const char* id) {
  Url url;
  url.rest_ = '#' + percent_encoded(id);
  return url;
}

Url Url::with(std::string_view name, std::string_view value) const {
  if (value.empty()) return *this;
  Url longer = *this;
  longer.query_ += query_.empty() ? '?' : '&';
  longer.query_ += percent_encoded(name) + '=' + percent_encoded(value);
  return longer;
}

}  // namespace pulse::console
