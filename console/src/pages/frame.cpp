#include "pages/frame.hpp"

#include <array>

#include "html/moment.hpp"

namespace pulse::console {
namespace {

struct Entry {
  Path path;
  const char* name;
};

const std::array<Entry, 10> kMenu{{
    {"/", "Overview"},
    {"/jobs", "Jobs"},
    {"/failed", "Failed"},
    {"/queues", "Queues"},
    {"/tasks", "Tasks"},
    {"/workers", "Workers"},
    {"/schedules", "Schedules"},
    {"/flows", "Flows"},
    {"/operations", "Operations"},
    {"/doctor", "Doctor"},
}};

// Constant once the first page is made.
Appearance& appearance() {
  static Appearance known;
  return known;
}

// The first entries of the menu are pages of all nodes, too.
constexpr std::size_t kPagesOfAllNodes = 3;

Markup menu(std::string_view section, std::size_t count) {
  Markup entries;
  for (std::size_t i = 0; i < count; ++i) {
    const Entry& entry = kMenu[i];
    const bool is_here = entry.path.text() == section;
    entries += element(
        "li", "",
        element("a",
                {{"href", Url(entry.path)},
                 {"aria-current", is_here ? std::optional<std::string>("page") : std::nullopt}},
                entry.name));
  }
  return element("nav", {{"aria-label", "Pages"}}, element("ul", "", entries));
}

// The page that the visitor reads, or the overview: of the first `count` pages.
Path page_of(std::string_view section, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (kMenu[i].path.text() == section) return kMenu[i].path;
  }
  return "/";
}

Markup node_entry(const Request& request, const std::string& node, const Path& path,
                  const std::string& name) {
  const bool is_here = request.node == node;
  return element(
      "li", "",
      element("a",
              {{"href", Url(path).at_node(node)},
               {"aria-current", is_here ? std::optional<std::string>("true") : std::nullopt}},
              name));
}

// The way to the same page of another node.
Markup node_menu(const Request& request, std::string_view section) {
  if (appearance().nodes.empty()) return {};
  Markup entries = node_entry(request, "", page_of(section, kPagesOfAllNodes), "All nodes");
  for (const std::string& node : appearance().nodes) {
    entries += node_entry(request, node, page_of(section, kMenu.size()), node);
  }
  return element("nav", {{"class", "nodes"}, {"aria-label", "Nodes"}}, element("ul", "", entries));
}

Markup menus(const Request& request, std::string_view section) {
  const bool is_about_all = request.node.empty() && !appearance().nodes.empty();
  return {node_menu(request, section),
          menu(section, is_about_all ? kPagesOfAllNodes : kMenu.size())};
}

// The name of the visitor's token, and the way to sign in or out.
Markup visitor(const Request& request) {
  const Access& access = request.access;
  if (!access.has_token()) {
    const bool is_left_for_sign_in = !request.is_change() && request.path != "/login";
    const std::string next = is_left_for_sign_in ? request.http.target : "";
    return {element("span", "role", "read only"),
            link(Url("/login").with("next", next), "Sign in")};
  }
  Markup who = element("span", "role", access.token);
  if (!access.csrf.empty()) {
    who += form(request, Url("/logout"), element("button", {{"class", "plain"}}, "Sign out"));
  }
  return who;
}

// In which the session spells times; empty where the database does not answer.
std::string zone_of(const Request& request) {
  if (request.session == nullptr || !request.session->is_open()) return {};
  try {
    return request.session->query("SELECT current_setting('TimeZone') AS zone")[0].text("zone");
  } catch (const std::runtime_error&) {
    return {};
  }
}

Markup header(const Request& request, const View& view) {
  const Markup brand = element("a", {{"class", "brand"}, {"href", Url("/").at_node("")}},
                               {element("svg", {{"viewBox", "0 0 24 24"}, {"aria-hidden", "true"}},
                                        element("path", {{"d", "M2 13h5l2.5-8 5 15 2.5-7h5"}})),
                                element("span", "", "pulse")});
  const std::string name = request.session == nullptr ? "" : request.session->name();
  const std::string& title = appearance().title;
  Markup parts{brand, title.empty() ? Markup() : element("span", "site", title),
               element("span", "database", name)};
  if (view.has_menu) {
    const std::string zone = zone_of(request);
    if (!zone.empty()) parts += element("span", "zone", {"times in ", element("b", "", zone)});
    parts += {menus(request, view.section), element("div", "visitor", visitor(request))};
  }
  return element("header", "", parts);
}

}  // namespace

void set_appearance(Appearance known) { appearance() = std::move(known); }

Response shown_page(const Request& request, const View& view) {
  const Markup body{
      element("a", {{"class", "skip"}, {"href", Url::to_place("main")}}, "Skip to the content"),
      header(request, view),
      element("p", {{"id", "trouble"}, {"role", "status"}, {"hidden", present_if(true)}}),
      element("main", {{"id", "main"}, {"tabindex", "-1"}}, view.content)};
  const Appearance& known = appearance();
  const std::string site = known.title.empty() ? "" : known.title + " · ";
  std::string css = known.colour.empty() ? "" : "site-" + known.colour;
  if (!view.has_menu) css += css.empty() ? "bare" : " bare";
  return html(whole_page(site + view.title + " · pulse", body, css), view.status);
}

Spelling spelling_of(const Request& request) {
  const QueryResult rows = request.database().query("SELECT pulse.now() AS now");
  return {microseconds_of(rows[0].text("now")).value_or(0)};
}

std::string worker_name(Database& database, const std::string& id) {
  const QueryResult rows =
      database.query("SELECT name FROM pulse.worker_status WHERE id = $1::text::bigint", {id});
  return rows.empty() ? id : rows[0].optional_text("name").value_or(id);
}

Markup live(const Url& stream, const Markup& content) {
  return element("div", {{"data-live", stream.address()}}, content);
}

Markup page_heading(const Markup& title, const Markup& actions, const Markup& lead) {
  Markup text = element("h1", "", title);
  if (!lead.empty()) text += element("p", "lead", lead);
  Markup parts = element("div", "", text);
  if (!actions.empty()) parts += element("div", "actions", actions);
  return element("div", "heading", parts);
}

Markup section(const char* title, const Markup& content) {
  if (content.empty()) return {};
  return element("section", "", {element("h2", "", title), content});
}

Markup notice(const char* kind, const Markup& content) {
  return element("div", {{"class", std::string("notice ") + kind}, {"role", "status"}}, content);
}

Markup uncounted() {
  return notice("", {"Rates and times are counted once ", element("code", "", "pg_pulse"),
                     " is in ", element("code", "", "shared_preload_libraries"), "."});
}

Markup button(const Url& url, const std::string& name, const char* css) {
  return link(url, name, css);
}

Markup form(const Request& request, const Url& action, const Markup& content) {
  return element("form", {{"method", "post"}, {"action", action}},
                 {hidden_field("csrf", request.access.csrf), content});
}

Markup field(const char* label, const char* name, const std::string& value, const char* hint,
             const char* kind) {
  Markup parts = element("span", "label", label);
  parts += element("input", {{"type", kind},
                             {"name", name},
                             {"value", value},
                             {"autocomplete", "off"},
                             {"spellcheck", "false"}});
  if (*hint != '\0') parts += element("span", "hint", hint);
  return element("label", "field", parts);
}

Markup hidden_field(const char* name, const std::string& value) {
  return element("input", {{"type", "hidden"}, {"name", name}, {"value", value}});
}

Markup answers(const Answer& answer) {
  const char* const css = answer.is_grave ? "danger" : "primary";
  const Markup yes = element(
      "button", {{"class", css}, {"type", "submit"}, {"autofocus", present_if(!answer.is_grave)}},
      answer.yes);
  const Markup no = element(
      "a", {{"class", "button"}, {"href", answer.back}, {"autofocus", present_if(answer.is_grave)}},
      answer.no);
  return element("div", "answer", {yes, no});
}

}  // namespace pulse::console
