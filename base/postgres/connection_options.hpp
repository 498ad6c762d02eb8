// Connection options: the server to connect to, and how.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/loop/duration.hpp"

namespace pulse {

// The way out for an operator whose program opens no session.
inline constexpr const char* kHowToConnect =
    "-d and libpq's environment (PGHOST, PGDATABASE, PGUSER, PGPASSWORD …) say where to connect "
    "and as whom";

// How to connect: first the user's words, then libpq's environment and service file, then this
// program's defaults (keepalives, which servers, an application name).
class ConnectOptions {
 public:
  // Of several hosts, the first host of this kind, unless the user says otherwise.
  enum class Server { primary, any };

  // Reads the environment, so only before threads are started. An unreadable `database` gives the
  // reason as text.
  static std::variant<ConnectOptions, std::string> read(const std::string& database,
                                                        const std::string& application_name,
                                                        Server server = Server::primary);

  // Takes the password out of the environment of this process, and out of the environment that
  // other processes can read.
  static void forget_password();

  // Puts the next of several hosts first, after one that did not answer in time.
  void rotate_hosts();
  bool has_several_hosts() const;

  // For one attempt to connect: the operator's connect_timeout, which libpq leaves to the caller.
  Duration deadline() const { return deadline_; }

  struct Option {
    std::string keyword;
    std::string value;
  };
  const std::vector<Option>& list() const { return list_; }

 private:
  std::vector<Option> list_;
  Duration deadline_ = std::chrono::seconds(5);
};

}  // namespace pulse
