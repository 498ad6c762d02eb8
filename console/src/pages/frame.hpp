// The frame around every page, and the pieces that many pages share.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "html/value.hpp"
#include "serve/request.hpp"
#include "serve/response.hpp"

namespace pulse::console {

// By which this server differs from others: title and colour, as production from staging, and the
// nodes.
struct Appearance {
  std::string title;                    // stands beside the name of the program; empty: none
  std::string colour;                   // of kColours; empty: none
  std::vector<std::string> nodes = {};  // the NAMEs of several databases; empty for one database
};
inline constexpr std::array<const char*, 6> kColours{"red",  "orange", "green",
                                                     "blue", "purple", "grey"};

// For all pages; called before the server makes the first page.
void set_appearance(Appearance appearance);

struct View {
  std::string title;
  const char* section;  // path of the present entry of the menu; "" for none
  Markup content;
  unsigned status = 200;
  bool has_menu = true;  // false: before somebody has signed in, each entry would lead back
};

Response shown_page(const Request& request, const View& view);

// With the time of the database, from which the page counts ages.
Spelling spelling_of(const Request& request);

// The name of a worker; the id where no name is on record.
std::string worker_name(Database& database, const std::string& id);

// Content that the browser replaces with each event of this stream.
Markup live(const Url& stream, const Markup& content);

// The title of a page, with its actions.
Markup page_heading(const Markup& title, const Markup& actions = Markup(),
                    const Markup& lead = Markup());

// A section with a title; empty without content.
Markup section(const char* title, const Markup& content);

// Stands in place of rates and times where the server does not count.
Markup uncounted();
Markup notice(const char* kind, const Markup& content);  // good, warning or bad
Markup button(const Url& url, const std::string& name, const char* css = "button");

// A form with the secret that proves that a page of this session sends it.
Markup form(const Request& request, const Url& action, const Markup& content);
Markup field(const char* label, const char* name, const std::string& value, const char* hint = "",
             const char* kind = "text");
// A field that the form sends without showing it.
Markup hidden_field(const char* name, const std::string& value);

// How a question may be answered.
struct Answer {
  std::string yes;  // of a grave change the words name the change: "Cancel 39 jobs"
  bool is_grave;
  Url back;
  const char* no = "Back";  // of a grave change: the outcome of no, as "Keep them"
};
// Ends a form: the button that makes the change, and the link that changes nothing. The focus is on
// the button; of a grave change, on the link.
Markup answers(const Answer& answer);

}  // namespace pulse::console
