// The file of tokens: which clients may do more than read, and as which role of the database.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pulse::console {

struct Token {
  std::string name;
  std::string role;
  std::string hash;
};

using TokenList = std::vector<Token>;

// Lines of NAME ROLE sha256:HASH; `#` begins a comment. Otherwise a text that names the fault, with
// the line.
std::variant<TokenList, std::string> parse_tokens(std::string_view text);

// A line of the file, with its end.
std::string token_line(const Token& token);

// The present content of the file: a change of the file counts within a second, from any thread. Of
// a file with lines that cannot be understood the other lines count; a file that cannot be read has
// no token. While the process is out of descriptors or memory, the tokens read before count for a
// minute: a client that uses the descriptors up keeps no token that was removed.
class Tokens {
 public:
  using Clock = std::chrono::steady_clock;

  // Without a path there are none.
  static std::variant<Tokens, std::string> read(const std::string& path);

  bool is_required() const { return !path_.empty(); }
  // Of this secret. All hashes are compared, each in constant time.
  std::optional<Token> find_secret(std::string_view secret, Clock::time_point now = Clock::now());
  // The tokens that are in the file now.
  TokenList all(Clock::time_point now = Clock::now());

  // Why the file could not be read again: once, until the file is read or there is another reason.
  std::optional<std::string> new_problem();

 private:
  void refresh(Clock::time_point now);

  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  std::string path_;
  std::string text_;
  TokenList list_;
  std::optional<std::string> problem_;
  std::optional<std::string> told_;
  Clock::time_point checked_at_;
  Clock::time_point read_at_ = Clock::now();
};

}  // namespace pulse::console
