// Connection options: the server to connect to, and how.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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

  // Whether libpq has an option of this name.
  static bool is_keyword(std::string_view name);

  // Takes the password out of the environment of this process, and out of the environment that
  // other processes can read.
  static void forget_password();

  // The same way to another server.
  ConnectOptions at(const std::string& host, const std::string& port) const;
  // Nothing where the option is left to libpq.
  std::optional<std::string> value(std::string_view keyword) const;
  bool operator==(const ConnectOptions& other) const = default;

  // Puts the next of several hosts first, after one that did not answer in time.
  void rotate_hosts();
  bool has_several_hosts() const;

  // For one attempt to connect: the operator's connect_timeout, which libpq leaves to the caller.
  Duration deadline() const { return deadline_; }

  struct Option {
    std::string keyword;
    std::string value;
    bool operator==(const Option& other) const = default;
  };
  const std::vector<Option>& list() const { return list_; }

 private:
  std::vector<Option> list_;
  Duration deadline_ = std::chrono::seconds(5);
};

// --database [NAME=]DSN.
struct DatabaseOption {
  std::string name;  // empty: not given
  std::string text;  // a name, a conninfo string or a URI; empty: libpq's environment decides
};

// What stands before the first '=' is a NAME if the database may have this name and libpq has no
// keyword of this name.
DatabaseOption parse_database(const std::string& text);
bool is_database_name(std::string_view name);

// One of the databases of a program. Of several databases each has a name of its own.
struct NamedDatabase {
  std::string name;  // empty: the only database, without a name
  ConnectOptions options;
  bool operator==(const NamedDatabase& other) const = default;
};

// Reads the options of each database, as ConnectOptions::read does. Of several databases, one
// without a NAME is called by its dbname. Returns a text that names the fault of the options.
std::variant<std::vector<NamedDatabase>, std::string> read_databases(
    const std::vector<DatabaseOption>& databases, const std::string& application_name,
    ConnectOptions::Server server = ConnectOptions::Server::primary);

}  // namespace pulse
