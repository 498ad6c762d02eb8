#include "html/markup.hpp"

#include <algorithm>
#include <array>

#include "base/text/inert.hpp"

namespace pulse::console {
namespace {

void append_escaped(std::string& html, std::string_view text) {
  for (const char letter : text) {
    switch (letter) {
      case '&': html += "&amp;"; break;
      case '<': html += "&lt;"; break;
      case '>': html += "&gt;"; break;
      case '"': html += "&quot;"; break;
      case '\'': html += "&#39;"; break;
      default: html += letter;
    }
  }
}

// Elements that have no content and no end.
bool is_void(std::string_view tag) {
  constexpr std::array<std::string_view, 6> kVoid{"br", "hr", "input", "link", "meta", "wbr"};
  return std::find(kVoid.begin(), kVoid.end(), tag) != kVoid.end();
}

}  // namespace

Markup::Markup(std::string_view text) { append_escaped(html_, inert(text)); }

Markup::Markup(std::initializer_list<Markup> parts) {
  for (const Markup& part : parts) html_ += part.html_;
}

Markup& Markup::operator+=(const Markup& more) {
  html_ += more.html_;
  return *this;
}

Markup lines(std::string_view text) {
  Markup markup;
  append_escaped(markup.html_, inert(text, Lines::kept));
  return markup;
}

Markup element(Tag tag, const Attributes& attributes, const Markup& content) {
  Markup markup;
  std::string& html = markup.html_;
  html += '<';
  html += tag.name();
  for (const Attribute& attribute : attributes) {
    if (!attribute.value) continue;
    html += ' ';
    html += attribute.name;
    html += "=\"";
    append_escaped(html, inert(*attribute.value));
    html += '"';
  }
  html += '>';
  if (is_void(tag.name())) return markup;
  html += content.html_;
  html += "</";
  html += tag.name();
  html += '>';
  return markup;
}

Markup element(Tag tag, const char* css, const Markup& content) {
  return element(tag, {{"class", *css == '\0' ? std::nullopt : std::optional<std::string>(css)}},
                 content);
}

std::string whole_page(std::string_view title, const Markup& body, const std::string& css) {
  return "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
         "<meta name=\"color-scheme\" content=\"light dark\">"
         "<link rel=\"stylesheet\" href=\"" +
         Url("/assets/page.css").address() +
         "\"><link rel=\"icon\" type=\"image/svg+xml\" href=\"" +
         Url("/assets/icon.svg").address() + "\"><script src=\"" +
         Url("/assets/page.js").address() + "\" defer></script>" +
         element("title", "", title).html() + "</head>" +
         element("body", css.c_str(), body).html() + "</html>\n";
}

Markup link(const Url& url, const Markup& content, const char* css) {
  return element(
      "a",
      {{"href", url}, {"class", *css == '\0' ? std::nullopt : std::optional<std::string>(css)}},
      content);
}

}  // namespace pulse::console
