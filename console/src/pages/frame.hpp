// What every page has around it, and the pieces that many share.
#pragma once

#include <string>

#include "html/value.hpp"
#include "serve/request.hpp"
#include "serve/response.hpp"

namespace pulse::console {

struct View {
  std::string title;
  const char* section;  // path of the entry of the menu that is marked; "" for none
  Markup content;
  unsigned status = 200;
};

Response shown_page(const Request& request, const View& view);

// The moment of the database, from which ages are told.
Spelling spelling_of(const Request& request);

// Content that is sent anew whenever it has changed, from this address.
Markup live(const Url& stream, const Markup& content);

// The title of a page, with what may be done there.
Markup page_heading(const Markup& title, const Markup& actions = Markup(),
                    const Markup& lead = Markup());

// A part with a title; nothing without content.
Markup section(const char* title, const Markup& content);

// Instead of rates and times, where the server does not count.
Markup uncounted();
Markup notice(const char* kind, const Markup& content);  // good, warning or bad
Markup button(const Url& url, const char* name, const char* css = "button");

// A form that is sent back here, with what proves that it comes from a page of this session.
Markup form(const Request& request, const Url& action, const Markup& content);
Markup field(const char* label, const char* name, const std::string& value, const char* hint = "",
             const char* kind = "text");
// Ends a form: what is to be done, and the way back.
Markup answer(const char* yes, const char* css, const Url& back);

}  // namespace pulse::console
