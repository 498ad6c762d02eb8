#include "admission/gate.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>

#include "admission/cookie.hpp"
#include "admission/digest.hpp"
#include "admission/sign_in.hpp"
#include "http/http_host.hpp"
#include "http/http_status.hpp"
#include "serve/problem.hpp"

namespace pulse::console {
namespace {

constexpr std::chrono::hours kSignInLasts(12);

std::chrono::sys_seconds now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// What the browser says about the page that sent it.
bool is_from_elsewhere(const Request& request) {
  const std::string& site = request.header("sec-fetch-site");
  if (!site.empty() && site != "same-origin" && site != "none") return true;
  const std::string& origin = request.header("origin");
  if (origin.empty()) return false;
  const std::size_t place = origin.find("://");
  return place == std::string::npos ||
         lower(origin.substr(place + 3)) != lower(request.header("host"));
}

// A path of this server, and no way to another.
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

// A cookie is for all ports of a host, so its name has the port.
std::string cookie_name(const Request& request) {
  const std::string& host = request.header("host");
  const std::size_t last = host.find_last_not_of("0123456789");
  const bool has_port = last != std::string::npos && host[last] == ':';
  return has_port ? "pulse_" + host.substr(last + 1) : "pulse";
}

std::string cookie_of(const Request& request) {
  return cookie_value(request.header("cookie"), cookie_name(request));
}

// Lax: a link on another site leads a visitor who is signed in to the page. What changes something
// is a form, whose page has to prove itself besides.
Response with_cookie(const Request& request, const std::string& value, std::chrono::seconds age,
                     const std::string& location) {
  Response response = see_other(location);
  response.headers.emplace_back(
      "Set-Cookie", cookie_name(request) + '=' + value +
                        "; Path=/; HttpOnly; SameSite=Lax; Max-Age=" + std::to_string(age.count()));
  return response;
}

}  // namespace

void Gate::check_host(const Request& request) const {
  const std::string& host = request.header("host");
  if (host.empty()) refuse(http_status::kBadRequest, "the request names no host");
  if (is_name_of_server(name_in_host(host), names_)) return;
  refuse(http_status::kMisdirectedRequest, "this server is not called " + host,
         "Use its address or localhost, or start it with --host NAME.");
}

// A token that is shown counts, or else the cookie.
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
  // A browser adds the cookie to whatever page sends the request; the secret is in our forms only.
  if (request.is_change() && !access.csrf.empty()) {
    const std::string& header = request.header("x-csrf-token");
    const std::string& shown = header.empty() ? request.form.get("csrf") : header;
    if (!are_same(shown, access.csrf) || is_from_elsewhere(request)) {
      refuse(http_status::kForbidden,
             "the form is not from this server, or from an earlier sign-in",
             "Load the page again.");
    }
  }
  return access;
}

Response Gate::sign_in(Request& request) {
  if (is_from_elsewhere(request))
    refuse(http_status::kForbidden, "the form is not from this server");
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
