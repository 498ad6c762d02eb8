// The contents of a browser's cookie: with which token the visitor signed in, and until when.
// Invariants:
// - The server keeps nothing of a sign-in. So a server that starts again, or a second server with
//   the same file of tokens, takes the cookie, too.
// - The key of a cookie comes from the token's line in the file. An operator who takes the line
//   out, or changes it, ends the sign-ins of the token; no change of another line ends any sign-in.
// - The token itself is in the cookie, under the seal, and the line has only the hash of the token.
//   So a reader of the file makes no cookie, and a reader of the cookie learns no token.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "admission/tokens.hpp"

namespace pulse::console {

struct SignIn {
  Token token;
  std::string csrf;  // sent by the forms of this sign-in: the same from every server
};

// The value of the cookie. `secret` is the token whose hash the line has.
std::string make_sign_in(const Token& token, std::string_view secret, std::chrono::sys_seconds end);

// Nothing for a cookie that no server made with a line of `tokens`, and for a cookie that has
// ended.
std::optional<SignIn> read_sign_in(std::string_view cookie, const TokenList& tokens,
                                   std::chrono::sys_seconds now);

}  // namespace pulse::console
