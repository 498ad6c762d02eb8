#include "html/url.hpp"

#include "serve/form.hpp"

namespace pulse::console {

Url Url::part(std::string_view text) const {
  Url longer = *this;
  longer.rest_ += (path_.ends_with('/') && rest_.empty() ? "" : "/") + encode_part(text);
  return longer;
}

Url Url::to_place(const char* id) {
  Url url;
  url.rest_ = '#' + encode_part(id);
  return url;
}

Url Url::with(std::string_view name, std::string_view value) const {
  if (value.empty()) return *this;
  Url longer = *this;
  longer.query_ += query_.empty() ? '?' : '&';
  longer.query_ += encode_part(name) + '=' + encode_part(value);
  return longer;
}

}  // namespace pulse::console
