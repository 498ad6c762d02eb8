// Lets clients in, by the name that they call the server by, and by a token or a browser's cookie.
// For the server's thread alone.
#pragma once

#include <string>
#include <vector>

#include "admission/sign_ins.hpp"
#include "admission/tokens.hpp"
#include "serve/request.hpp"
#include "serve/response.hpp"

namespace pulse::console {

class Gate {
 public:
  // `names`: what else than an address or localhost clients may call this server.
  Gate(Tokens tokens, std::vector<std::string> names)
      : tokens_(std::move(tokens)), names_(std::move(names)) {}

  // A page of another origin that had its name point here would be called by that name.
  void check_host(const Request& request) const;

  // The client's access. Throws Failed for a client that the need keeps out, and for a change that
  // a page of another origin may have sent.
  Access admit(const Request& request, Need need);

  // False once the token of a request was taken out of the file. For any thread.
  bool still_admits(const Access& access);

  // For the form field `token`: a cookie and the way to `next`. Throws Failed for an unknown one.
  Response sign_in(const Request& request);
  Response sign_out(const Request& request);

  Tokens& tokens() { return tokens_; }

 private:
  Access access_of(const Request& request);

  Tokens tokens_;
  SignIns sign_ins_;
  const std::vector<std::string> names_;
};

}  // namespace pulse::console
