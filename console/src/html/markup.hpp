// HTML as a type of its own. Only escaping makes a text markup. The names of elements and
// attributes are constants that the compiler checks. So no text of a job can become a tag, a
// script, a style or an address.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "html/url.hpp"

namespace pulse::console {

// The name of an element. A browser would not read the content of scripts and styles as text.
class Tag {
 public:
  consteval Tag(const char* name) : name_(name) {
    for (const char letter : name_) {
      if ((letter < 'a' || letter > 'z') && (letter < '0' || letter > '9'))
        throw "no name of a tag";
    }
    if (name_ == "script" || name_ == "style") throw "scripts and styles are files";
  }
  std::string_view name() const { return name_; }

 private:
  std::string_view name_;
};

// The name of an attribute whose value is a text.
class Key {
 public:
  consteval Key(const char* name) : name_(name) {
    if (name_.starts_with("on") || name_ == "style") throw "scripts and styles are files";
    if (name_ == "href" || name_ == "src" || name_ == "action" || name_ == "formaction") {
      throw "an address is a Url";
    }
  }
  std::string_view name() const { return name_; }

 private:
  std::string_view name_;
};

// The name of an attribute whose value is an address.
class UrlKey {
 public:
  consteval UrlKey(const char* name) : name_(name) {}
  std::string_view name() const { return name_; }

 private:
  std::string_view name_;
};

struct Attribute {
  // Without a value the markup leaves the attribute out; with an empty value the attribute is a
  // flag.
  Attribute(Key key, std::optional<std::string> value)
      : name(key.name()), value(std::move(value)) {}
  Attribute(UrlKey key, const Url& url) : name(key.name()), value(url.address()) {}

  std::string_view name;
  std::optional<std::string> value;
};
using Attributes = std::vector<Attribute>;

class Markup {
 public:
  Markup() = default;
  // A text; the constructor joins lines, and spells invisible characters.
  Markup(std::string_view text);
  Markup(const char* text) : Markup(std::string_view(text)) {}
  Markup(const std::string& text) : Markup(std::string_view(text)) {}
  // Several pieces, one behind the other.
  Markup(std::initializer_list<Markup> parts);

  Markup& operator+=(const Markup& more);
  bool empty() const { return html_.empty(); }
  const std::string& html() const { return html_; }

  friend Markup element(Tag tag, const Attributes& attributes, const Markup& content);
  friend Markup lines(std::string_view text);

 private:
  std::string html_;
};

Markup element(Tag tag, const Attributes& attributes, const Markup& content = Markup());
// With nothing but a class, which may be empty.
Markup element(Tag tag, const char* css, const Markup& content = Markup());

// A text whose lines are kept, for an element that keeps lines.
Markup lines(std::string_view text);

// The value of an attribute that is there, without a text, or not.
inline std::optional<std::string> present_if(bool is_there) {
  return is_there ? std::optional<std::string>("") : std::nullopt;
}

Markup link(const Url& url, const Markup& content, const char* css = "");

// A whole page, which names a style and a script. `css`: the class of the page's body.
std::string whole_page(std::string_view title, const Markup& body, const std::string& css = "");

}  // namespace pulse::console
