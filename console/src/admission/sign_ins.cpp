#include "admission/sign_ins.hpp"

#include <algorithm>
#include <map>

#include "admission/digest.hpp"

namespace pulse::console {
namespace {

constexpr std::size_t kMaxSignIns = 1'000;
constexpr std::ptrdiff_t kMaxOfToken = 20;
constexpr std::chrono::hours kLifetime(12);

using List = std::list<SignIn>;

std::ptrdiff_t sign_ins_of(const List& list, const std::string& token_hash) {
  return std::count_if(list.begin(), list.end(),
                       [&](const SignIn& each) { return each.token_hash == token_hash; });
}

// The token of most sign-ins.
std::string busiest(const List& list) {
  std::map<std::string, std::size_t> counts;
  for (const SignIn& each : list) ++counts[each.token_hash];
  return std::max_element(
             counts.begin(), counts.end(),
             [](const auto& one, const auto& other) { return one.second < other.second; })
      ->first;
}

void remove_oldest(List& list, const std::string& token_hash) {
  list.erase(std::find_if(list.begin(), list.end(),
                          [&](const SignIn& each) { return each.token_hash == token_hash; }));
}

}  // namespace

std::string SignIns::add(const std::string& token_hash) {
  std::string secret = random_secret();
  if (sign_ins_of(list_, token_hash) >= kMaxOfToken) {
    remove_oldest(list_, token_hash);
  } else if (list_.size() >= kMaxSignIns) {
    remove_oldest(list_, busiest(list_));
  }
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
