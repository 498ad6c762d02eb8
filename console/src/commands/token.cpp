// pulse token: a new token for pulse serve.
#include <cstdio>

#include "admission/digest.hpp"
#include "admission/tokens.hpp"
#include "command_line/command_line.hpp"
#include "commands/commands.hpp"

namespace pulse::console {
namespace {

ExitStatus make_token(Token token) {
  const std::string secret = random_secret();
  token.hash = sha256(secret);
  const std::string line = token_line(token);
  if (!std::holds_alternative<TokenList>(parse_tokens(line))) {
    std::fputs("pulse: a name and a role are words of at most 63 bytes\n", stderr);
    return ExitStatus::usage;
  }
  // A secret whose line is lost is of no use.
  if (std::fputs(line.c_str(), stdout) < 0 || std::fflush(stdout) != 0) return ExitStatus::refused;
  std::fprintf(stderr, "the token of %s, which is shown this once: %s\n", token.name.c_str(),
               secret.c_str());
  return ExitStatus::done;
}

}  // namespace

void add_token(CommandLine& line) {
  auto token = std::make_shared<Token>();
  CLI::App& command =
      line.add("token", "Makes a token: its line for --tokens of serve, and the secret",
               [token](Console& /*console*/) { return make_token(*token); });
  command.add_option("NAME", token->name, "Who has it, for the record")->required();
  command.add_option("ROLE", token->role, "Role of the database that requests with it have")
      ->required();
}

}  // namespace pulse::console
