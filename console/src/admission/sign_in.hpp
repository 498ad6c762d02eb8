// What the cookie of a browser tells: with which token its visitor signed in, and until when.
// Invariants:
// - The server keeps nothing of a sign-in. So a server that starts again, or a second one with the
//   same file of tokens, takes the cookie, too.
// - The key of a cookie comes from the token's line in the file. A line that is taken out, or
//   changed, ends the sign-ins of its token; no change of another line ends any.
// - The token itself is in the cookie, under the seal, and the line has but its hash. So a reader
//   of the file makes no cookie, and a reader of the cookie learns no token.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "admission/tokens.hpp"

namespace pulse::console {

struct SignIn {
  Token token;
  std::string csrf;  // what the forms of this sign-in send: the same from every server
};

// The value of the cookie. `secret` is the token whose hash the line has.
std::string make_sign_in(const Token& token, std::string_view secret, std::chrono::sys_seconds end);

// Nothing for a cookie that no server made with one of these lines, and for one that has ended.
std::optional<SignIn> read_sign_in(std::string_view cookie, const TokenList& tokens,
                                   std::chrono::sys_seconds now);

}  // namespace pulse::console
