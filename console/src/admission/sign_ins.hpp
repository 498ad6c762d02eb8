// Browsers that have signed in with a token: each has a cookie, and a secret that its forms send.
#pragma once

#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <string_view>

namespace pulse::console {

struct SignIn {
  std::string cookie_hash;
  std::string csrf;
  std::string token_hash;
  std::chrono::steady_clock::time_point end;
};

class SignIns {
 public:
  // The secret for the cookie. A token has 20 at most, and all have 1,000: the oldest of the token
  // that has most makes room. So a token signs its own visitors out, and no other's.
  std::string add(const std::string& token_hash);
  std::optional<SignIn> find(std::string_view secret);
  void remove(std::string_view secret);

 private:
  std::list<SignIn> list_;  // the oldest first
};

// The value of a cookie in a Cookie header; empty if it is not there.
std::string cookie_value(std::string_view header, std::string_view name);

}  // namespace pulse::console
