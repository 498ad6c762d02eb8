// The pages of a visitor who has no access, asks for a page that does not exist, or comes while the
// database is gone; and the page to sign in.
#include "base/http/status.hpp"
#include "pages/frame.hpp"
#include "pages/pages.hpp"

namespace pulse::console {
namespace {

Markup sign_in(const std::string& next, const Markup& said) {
  return element(
      "form", {{"method", "post"}, {"action", Url("/login")}, {"class", "sign-in"}},
      {element("h1", "", "Sign in"), said,
       element("input", {{"type", "hidden"}, {"name", "next"}, {"value", next}}),
       element("label", "field",
               {element("span", "label", "Token"),
                element("input", {{"type", "password"},
                                  {"name", "token"},
                                  {"autocomplete", "current-password"},
                                  {"required", present_if(true)},
                                  {"autofocus", present_if(true)}})}),
       element("p", "hint",
               {"A token is made by ", element("code", "", "pulse token NAME ROLE"),
                ": its line goes into the file of --tokens, and the secret is printed once. "
                "Ask whoever runs this server for yours."}),
       element("div", "answer",
               element("button", {{"class", "primary"}, {"type", "submit"}}, "Sign in"))});
}

// Without a menu, whose entries would lead back here.
Response sign_in_page(const Request& request, const Markup& form, unsigned status) {
  View view{"Sign in", "", element("div", "question", form), status};
  view.has_menu = false;
  return shown_page(request, view);
}

Response login_page(const Request& request) {
  return sign_in_page(request, sign_in(request.query.get("next"), {}), http_status::kOk);
}

// The page that the browser asked for, with the query; for a form, the page that has the form.
std::string wanted_page(const Router& router, const Request& request) {
  const bool is_page = router.find("GET", request.path).route != nullptr;
  return is_page ? request.http.target : "/";
}

Response sign_in_page(const Router& router, const Request& request, const Problem& problem) {
  const bool is_wrong = request.path == "/login";
  const Markup said = is_wrong ? notice("bad", problem.detail) : Markup();
  const std::string next = is_wrong ? request.form.get("next") : wanted_page(router, request);
  return sign_in_page(request, sign_in(next, said), problem.status);
}

Response error_page(const Request& request, const Problem& problem) {
  Markup content{element("h1", "", problem.title), element("p", "", problem.detail)};
  if (!problem.hint.empty()) content += element("p", "hint", problem.hint);
  if (problem.status == http_status::kUnavailable) {
    content += element("p", {{"data-retry", present_if(true)}},
                       "This page comes back when the database does.");
  }
  content += element("div", "answer", button(Url("/"), "Overview"));
  return shown_page(request,
                    {problem.title, "", element("div", "question", content), problem.status});
}

}  // namespace

void add_error_pages(Router& router) {
  router.add("GET", "/login", Need::nothing, login_page);
  router.error_page = [&router](const Request& request, const Problem& problem) {
    if (problem.status == http_status::kUnauthorized) return sign_in_page(router, request, problem);
    return error_page(request, problem);
  };
}

}  // namespace pulse::console
