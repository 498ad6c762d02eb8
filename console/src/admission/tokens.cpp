#include "admission/tokens.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "admission/digest.hpp"
#include "base/text/trusted_file.hpp"

namespace pulse::console {
namespace {

constexpr std::string_view kScheme = "sha256:";
// How long tokens count that the process has no descriptors or memory to read again.
constexpr std::chrono::minutes kGrace{1};
constexpr std::size_t kHashLength = 64;
constexpr std::size_t kMaxNameLength = 63;  // as a role's

bool is_hash(std::string_view text) {
  return text.size() == kHashLength &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<Token> parse_line(const std::string& line) {
  std::istringstream words(line);
  Token token;
  std::string hash;
  std::string more;
  if (!(words >> token.name >> token.role >> hash) || words >> more) return std::nullopt;
  if (!hash.starts_with(kScheme)) return std::nullopt;
  token.hash = hash.substr(kScheme.size());
  if (!is_hash(token.hash) || token.name.size() > kMaxNameLength ||
      token.role.size() > kMaxNameLength) {
    return std::nullopt;
  }
  return token;
}

// Of the lines that can be understood, so that one mistake revokes no other token; and the first
// mistake.
struct Understood {
  TokenList list;
  std::optional<std::string> problem;
};

std::optional<std::string> add_line(TokenList& list, const std::string& line) {
  auto token = parse_line(line);
  if (!token) return "is not NAME ROLE sha256:HASH, as \"pulse token\" prints it";
  if (std::any_of(list.begin(), list.end(),
                  [&](const Token& other) { return other.name == token->name; })) {
    return "has a name that an earlier line has";
  }
  list.push_back(std::move(*token));
  return std::nullopt;
}

Understood understand(std::string_view text) {
  Understood read;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto problem = add_line(read.list, line);
    if (problem && !read.problem) read.problem = "line " + std::to_string(number) + ' ' + *problem;
  }
  return read;
}

}  // namespace

std::variant<TokenList, std::string> parse_tokens(std::string_view text) {
  Understood read = understand(text);
  if (read.problem) return std::move(*read.problem);
  return std::move(read.list);
}

std::string token_line(const Token& token) {
  return token.name + ' ' + token.role + ' ' + std::string(kScheme) + token.hash + '\n';
}

std::variant<Tokens, std::string> Tokens::read(const std::string& path) {
  Tokens tokens;
  if (path.empty()) return tokens;
  tokens.path_ = path;
  auto file = read_trusted_file(path);
  if (auto* problem = std::get_if<std::string>(&file)) return std::move(*problem);
  tokens.text_ = std::move(std::get<FileText>(file).text);
  auto list = parse_tokens(tokens.text_);
  if (auto* problem = std::get_if<std::string>(&list)) return path + ": " + *problem;
  tokens.list_ = std::move(std::get<TokenList>(list));
  return tokens;
}

void Tokens::refresh(Clock::time_point now) {
  if (path_.empty() || now - checked_at_ < std::chrono::seconds(1)) return;
  checked_at_ = now;
  auto file = try_trusted_file(path_);
  problem_.reset();
  if (auto* refusal = std::get_if<FileRefusal>(&file)) {
    problem_ = std::move(refusal->reason);
    if (refusal->is_transient && now - read_at_ < kGrace) return;
    text_.clear();
    list_.clear();
    return;
  }
  read_at_ = now;
  std::string& text = std::get<FileText>(file).text;
  if (text == text_) return;
  Understood read = understand(text);
  text_ = std::move(text);
  if (read.problem) problem_ = path_ + ": " + *read.problem;
  list_ = std::move(read.list);
}

std::optional<std::string> Tokens::new_problem() {
  const std::lock_guard lock(*mutex_);
  if (problem_ == told_) return std::nullopt;
  return told_ = problem_;
}

std::optional<Token> Tokens::find_secret(std::string_view secret, Clock::time_point now) {
  const std::string hash = sha256(secret);
  std::optional<Token> found;
  for (const Token& token : all(now)) {
    if (are_same(token.hash, hash)) found = token;
  }
  return found;
}

TokenList Tokens::all(Clock::time_point now) {
  const std::lock_guard lock(*mutex_);
  refresh(now);
  return list_;
}

}  // namespace pulse::console
