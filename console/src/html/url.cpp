#include "html/url.hpp"

#include <utility>

#include "base/text/percent.hpp"

namespace pulse::console {
namespace {

std::string& prefix() {
  static std::string prefix;
  return prefix;
}

std::string& node_path() {
  static thread_local std::string path;
  return path;
}

}  // namespace

void set_url_prefix(std::string text) { prefix() = std::move(text); }

std::string path_of_node(std::string_view node) {
  return node.empty() ? std::string() : "/n/" + std::string(node);
}

AddressesOfNode::AddressesOfNode(std::string_view node)
    : before_(std::exchange(node_path(), path_of_node(node))) {}

AddressesOfNode::~AddressesOfNode() { node_path() = before_; }

// A place on the page itself has no path.
std::string Url::address() const {
  if (path_.empty()) return text();
  return prefix() + node_path_.value_or(node_path()) + text();
}

Url Url::at_node(std::string_view node) const {
  Url elsewhere = *this;
  elsewhere.node_path_ = path_of_node(node);
  return elsewhere;
}

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
