#include "admission/sign_in.hpp"

#include <charconv>

#include "admission/digest.hpp"
#include "admission/seal.hpp"

namespace pulse::console {
namespace {

// A code for each purpose, so that no code tells another.
std::string code_of_line(const Token& token, std::string_view purpose) {
  return authentication_code(token.hash, std::string(purpose) + '\n' + token_line(token));
}

std::string key_of_line(const Token& token) { return code_of_line(token, "key of sign-ins"); }

// Tells which line a cookie belongs to, and nothing about the line.
std::string fingerprint_of_line(const Token& token) {
  constexpr std::size_t kFingerprintBytes = 16;
  return hexadecimal(code_of_line(token, "mark of sign-ins").substr(0, kFingerprintBytes));
}

std::string csrf_of(std::string_view secret, std::string_view cookie) {
  return hexadecimal(authentication_code(secret, "forms of sign-in\n" + std::string(cookie)));
}

std::optional<std::chrono::sys_seconds> expiry_of(std::string_view digits) {
  std::int64_t seconds = 0;
  const char* const last = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), last, seconds);
  if (error != std::errc() || rest != last) return std::nullopt;
  return std::chrono::sys_seconds(std::chrono::seconds(seconds));
}

}  // namespace

std::string make_sign_in(const Token& token, std::string_view secret,
                         std::chrono::sys_seconds end) {
  const std::string readable =
      fingerprint_of_line(token) + '.' + std::to_string(end.time_since_epoch().count());
  return readable + '.' + hexadecimal(seal(key_of_line(token), secret, readable));
}

std::optional<SignIn> read_sign_in(std::string_view cookie, const TokenList& tokens,
                                   std::chrono::sys_seconds now) {
  const std::size_t first = cookie.find('.');
  const std::size_t last = cookie.rfind('.');
  if (first == last) return std::nullopt;
  const auto end = expiry_of(cookie.substr(first + 1, last - first - 1));
  const auto sealed = bytes_of(cookie.substr(last + 1));
  if (!end || !sealed) return std::nullopt;
  for (const Token& token : tokens) {
    if (!are_same(fingerprint_of_line(token), cookie.substr(0, first))) continue;
    const auto secret = open_seal(key_of_line(token), *sealed, cookie.substr(0, last));
    if (!secret || !are_same(sha256(*secret), token.hash)) return std::nullopt;
    if (*end <= now) return std::nullopt;
    return SignIn{token, csrf_of(*secret, cookie)};
  }
  return std::nullopt;
}

}  // namespace pulse::console
