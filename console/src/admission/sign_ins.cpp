#include "admission/sign_ins.hpp"

#include <algorithm>

#include "admission/digest.hpp"

namespace pulse::console {
namespace {

constexpr std::size_t kMaxSignIns = 1'000;
constexpr std::chrono::hours kLifetime(12);

}  // namespace

std::string SignIns::add(const std::string& token_hash) {
  std::string secret = random_secret();
  if (list_.size() >= kMaxSignIns) list_.pop_front();
  list_.push_back(
      {sha256(secret), random_secret(), token_hash, std::chrono::steady_clock::now() + kLifetime});
  return secret;
}

std::optional<SignIn> SignIns::find(std::string_view secret) {
  const auto now = std::chrono::steady_clock::now();
  list_.remove_if([&](const SignIn& each) { return each.end <= now; });
  const std::string hash = sha256(secret);
  for (const SignIn& each : list_) {
    if (are_same(each.cookie_hash, hash)) return each;
  }
  return std::nullopt;
}

void SignIns::remove(std::string_view secret) {
  const std::string hash = sha256(secret);
  list_.remove_if([&](const SignIn& each) { return are_same(each.cookie_hash, hash); });
}

std::string cookie_value(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    std::string_view entry = header.substr(0, header.find(';'));
    header.remove_prefix(std::min(header.size(), entry.size() + 1));
    entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || entry.substr(0, equals) != name) continue;
    return std::string(entry.substr(equals + 1));
  }
  return {};
}

}  // namespace pulse::console
