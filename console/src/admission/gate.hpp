// Lets clients in, by the name by which they call the server, and by a token or a browser's cookie.
// For the server's thread alone.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "admission/tokens.hpp"
#include "serve/origin.hpp"
#include "serve/request.hpp"
#include "serve/response.hpp"

namespace pulse::console {

class Gate {
 public:
  // `names`: by which clients may call this server, besides addresses, localhost and the host of
  // the origin.
  Gate(Tokens tokens, std::vector<std::string> names, Origin origin = {});

  // Throws Failed for another name: a page of another origin can make a name of its own point here.
  void check_host(const Request& request) const;

  // The client's access. Throws Failed for a client that the need keeps out, and for a change that
  // a page of another origin may have sent.
  Access admit(const Request& request, Need need);

  // False once the file no longer has the token of the request unchanged. For any thread.
  bool still_admits(const Access& access);

  // Answers the form field `token` with a cookie and a redirect to `next`. Throws Failed for an
  // unknown token; else the request gets the token's name.
  Response sign_in(Request& request);
  // Takes the cookie from the browser. A copy of the cookie counts until the sign-in ends.
  Response sign_out(const Request& request);

  Tokens& tokens() { return tokens_; }

 private:
  Access access_of(const Request& request);
  std::string cookie_of(const Request& request) const;
  Response with_cookie(const Request& request, const std::string& value, std::chrono::seconds age,
                       const std::string& location) const;
  // Throws Failed for a form that a page of another origin sent, as far as the browser tells.
  void check_sender(const Request& request) const;

  Tokens tokens_;
  const Origin origin_;
  std::vector<std::string> names_;  // constant
};

}  // namespace pulse::console
