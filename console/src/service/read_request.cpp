#include "service/read_request.hpp"

#include "base/http/status.hpp"
#include "serve/media_type.hpp"
#include "serve/problem.hpp"

namespace pulse::console {
namespace {

constexpr std::string_view kFormType = "application/x-www-form-urlencoded";

Form form_of(std::string_view text, const char* what) {
  auto form = parse_form(text);
  if (!form)
    refuse(http_status::kBadRequest, what, "It must be UTF-8, percent-encoded, and without NUL.");
  return std::move(*form);
}

}  // namespace

Request read_request(HttpRequest http) {
  Request request;
  request.method = http.method;
  const std::size_t question = std::min(http.target.find('?'), http.target.size());
  request.path = http.target.substr(0, question);
  request.body = std::move(http.body);
  request.http = std::move(http);
  if (request.http.is_ambiguous)
    refuse(http_status::kBadRequest, "a header came twice, or a blank in its name");
  if (request.http.is_coded)
    refuse(http_status::kNotImplemented, "the only transfer coding here is chunked");
  if (!request.path.starts_with('/'))
    refuse(http_status::kBadRequest, "the target is no path of this server");
  if (request.http.is_too_large)
    refuse(http_status::kContentTooLarge, "the body is too large", "It may have 1 MB.");
  const std::string& target = request.http.target;
  request.query = form_of(std::string_view(target).substr(std::min(question + 1, target.size())),
                          "the query cannot be understood");
  if (media_type_of(request) == kFormType) {
    request.form = form_of(request.body, "the form cannot be understood");
  }
  return request;
}

}  // namespace pulse::console
