#include "admission/gate.hpp"

#include <algorithm>
#include <chrono>

#include "admission/cookie.hpp"
#include "admission/digest.hpp"
#include "admission/sign_in.hpp"
#include "base/http/host.hpp"
#include "base/http/status.hpp"
#include "serve/problem.hpp"
#include "text/lower.hpp"

namespace pulse::console {
namespace {

constexpr std::chrono::hours kSignInLasts(12);

std::chrono::sys_seconds now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

// A path of this server, and no way to another server.
bool is_local(const std::string& location) {
  return location.starts_with('/') && !location.starts_with("//") &&
         std::none_of(location.begin(), location.end(),
                      [](unsigned char c) { return c <= ' ' || c == '\\' || c > '~'; });
}

std::string bearer_of(const Request& request) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string& value = request.header("authorization");
  if (lower(value.substr(0, kScheme.size())) != kScheme) return {};
  return value.substr(kScheme.size());
}

}  // namespace

Gate::Gate(Tokens tokens, std::vector<std::string> names, Origin origin)
    : tokens_(std::move(tokens)), origin_(std::move(origin)), names_(std::move(names)) {
  if (origin_.is_given()) names_.push_back(origin_.host);
}

std::string Gate::cookie_of(const Request& request) const {
  return cookie_value(request.header("cookie"), cookie_kind(origin_, request.header("host")).name);
}

Response Gate::with_cookie(const Request& request, const std::string& value,
                           std::chrono::seconds age, const std::string& location) const {
  const CookieKind kind = cookie_kind(origin_, request.header("host"));
  Response response = see_other(location);
  response.headers.emplace_back("Set-Cookie", kind.name + '=' + value + kind.attributes +
                                                  "; Max-Age=" + std::to_string(age.count()));
  return response;
}

// A refusal names both values, because a proxy may have changed one value.
void Gate::check_sender(const Request& request) const {
  const std::string& origin = request.header("origin");
  const std::string& host = request.header("host");
  const std::string scheme = origin.substr(0, origin.find("://"));
  if (origin_.is_given() && !origin.empty() && lower(origin) != origin_.text) {
    refuse(http_status::kForbidden,
           "the form is from another address: the header Origin is " + origin +
               ", and --origin is " + origin_.address(),
           "Open " + origin_.address() +
               "/, or start the server with the --origin that browsers "
               "use.");
  }
  if (!origin_.is_given() && !origin.empty() && lower(origin) != scheme + "://" + lower(host)) {
    refuse(http_status::kForbidden,
           "the form is from another address: the header Origin is " + origin +
               ", and the header Host is " + host,
           "A proxy has to pass Host on as it came, with the port; or start the server with the "
           "address that browsers use: --origin " +
               origin +
               ", and the path prefix if there is "
               "one.");
  }
  const std::string& site = request.header("sec-fetch-site");
  if (site.empty() || site == "same-origin" || site == "none") return;
  refuse(http_status::kForbidden,
         "the form is from a page of another site: the header Sec-Fetch-Site is " + site +
             ", and has to be same-origin",
         "Load the page of this server, and send its form.");
}

void Gate::check_host(const Request& request) const {
  const std::string& host = request.header("host");
  if (host.empty()) refuse(http_status::kBadRequest, "the request names no host");
  if (is_name_of_server(name_in_host(host), names_)) return;
  refuse(http_status::kMisdirectedRequest,
         "this server is not called " + host + ", as the header Host says",
         "Use its address or localhost, or start it with --host NAME or --origin URL.");
}

// A token that the client shows counts, or else the cookie.
Access Gate::access_of(const Request& request) {
  if (!request.header("authorization").empty()) {
    const auto token = tokens_.find_secret(bearer_of(request));
    if (!token) return {};
    return {.token = token->name, .hash = token->hash, .role = token->role};
  }
  const std::string cookie = cookie_of(request);
  const auto sign_in = cookie.empty() ? std::nullopt : read_sign_in(cookie, tokens_.all(), now());
  if (!sign_in) return {};
  const Token& token = sign_in->token;
  return {.token = token.name, .hash = token.hash, .role = token.role, .csrf = sign_in->csrf};
}

bool Gate::still_admits(const Access& access) {
  if (!access.has_token()) return !tokens_.is_required();
  const TokenList tokens = tokens_.all();
  return std::any_of(tokens.begin(), tokens.end(), [&](const Token& token) {
    return token.name == access.token && token.role == access.role && token.hash == access.hash;
  });
}

Access Gate::admit(const Request& request, Need need) {
  Access access = access_of(request);
  if (need == Need::act && !tokens_.is_required()) {
    refuse(http_status::kForbidden, "this server has no tokens, so it changes nothing",
           "Start it with --tokens FILE.");
  }
  const bool is_shown_in_vain = !access.has_token() && !request.header("authorization").empty();
  const bool is_kept_out = !access.has_token() && tokens_.is_required();
  if (need != Need::nothing && (is_shown_in_vain || is_kept_out)) {
    throw Failed({.status = http_status::kUnauthorized,
                  .title = title_of(http_status::kUnauthorized),
                  .detail = is_shown_in_vain ? "the token is not known" : "a token is needed",
                  .hint = "Send Authorization: Bearer TOKEN; in a browser, sign in.",
                  .is_guess = is_shown_in_vain || !cookie_of(request).empty()});
  }
  if (!request.is_change()) return access;
  // A proxy may add a token to any request of a browser, so the check is not about cookies alone.
  check_sender(request);
  // A browser adds the cookie to a request of any page; only forms of this server have the secret.
  if (!access.csrf.empty()) {
    const std::string& header = request.header("x-csrf-token");
    const std::string& shown = header.empty() ? request.form.get("csrf") : header;
    if (!are_same(shown, access.csrf)) {
      refuse(http_status::kForbidden,
             "the form is of an earlier sign-in: its field csrf is another",
             "Load the page again.");
    }
  }
  return access;
}

Response Gate::sign_in(Request& request) {
  check_sender(request);
  const std::string& secret = request.form.get("token");
  const auto token = tokens_.find_secret(secret);
  if (!token) {
    throw Failed({.status = http_status::kUnauthorized,
                  .title = title_of(http_status::kUnauthorized),
                  .detail = "the token is not known",
                  .hint = "\"pulse token\" makes one.",
                  .is_guess = true});
  }
  request.access.token = token->name;
  const std::string& next = request.form.get("next");
  return with_cookie(request, make_sign_in(*token, secret, now() + kSignInLasts), kSignInLasts,
                     is_local(next) ? next : "/");
}

Response Gate::sign_out(const Request& request) {
  return with_cookie(request, "", std::chrono::seconds(0), "/");
}

}  // namespace pulse::console
