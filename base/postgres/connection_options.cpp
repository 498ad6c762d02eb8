#include "base/postgres/connection_options.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "base/text/parse_number.hpp"

namespace pulse {
namespace {

struct ConninfoDeleter {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};
using ConninfoPtr = std::unique_ptr<PQconninfoOption, ConninfoDeleter>;

// The keywords that name servers; the values are lists of equal length, or one value for all.
constexpr std::array<std::string_view, 3> kHostLists{"host", "hostaddr", "port"};

bool is_host_list(std::string_view keyword) {
  return std::find(kHostLists.begin(), kHostLists.end(), keyword) != kHostLists.end();
}

// Dead peers are noticed within about 20 seconds; libpq's own default is over two hours.
constexpr std::array<std::array<const char*, 2>, 4> kKeepalives{{{"keepalives_idle", "5"},
                                                                 {"keepalives_interval", "5"},
                                                                 {"keepalives_count", "3"},
                                                                 {"tcp_user_timeout", "15000"}}};

constexpr const char* kPassword = "PGPASSWORD";

// As libpq does: a text in the form of a connection string is a connection string; any other text
// is the name of a database.
bool is_connection_string(std::string_view text) {
  return text.find('=') != std::string_view::npos || text.starts_with("postgres://") ||
         text.starts_with("postgresql://");
}

std::optional<std::string> value_in(const PQconninfoOption* options, std::string_view keyword) {
  for (; options != nullptr && options->keyword != nullptr; ++options) {
    if (options->keyword == keyword && options->val != nullptr) return options->val;
  }
  return std::nullopt;
}

// A port in a list of ports that is no number: libpq would say so only at each attempt to connect.
std::string port_problem(std::string_view ports) {
  while (!ports.empty()) {
    const std::size_t comma = std::min(ports.find(','), ports.size());
    std::string_view port = ports.substr(0, comma);
    ports.remove_prefix(std::min(comma + 1, ports.size()));
    if (port.empty()) continue;  // the default
    port.remove_prefix(std::min(port.find_first_not_of(" \t\n"), port.size()));
    port = port.substr(0, port.find_last_not_of(" \t\n") + 1);
    const auto number = parse_number<int>(port);
    if (!number || *number < 1 || *number > 65535) {
      return std::string("'").append(port).append("' is no number of a port");
    }
  }
  return {};
}

// The options of the environment and the service file. libpq reads the service that PGSERVICE
// names; a service in the connection string comes first, so it stands in for the variable during
// this call.
ConninfoPtr read_defaults(const std::optional<std::string>& service) {
  const char* inherited = std::getenv("PGSERVICE");
  const std::optional<std::string> before =
      inherited == nullptr ? std::nullopt : std::optional<std::string>(inherited);
  if (service) setenv("PGSERVICE", service->c_str(), 1);
  ConninfoPtr defaults(PQconndefaults());
  if (service && before) setenv("PGSERVICE", before->c_str(), 1);
  if (service && !before) unsetenv("PGSERVICE");
  return defaults;
}

// Names the databases without a NAME. Returns the fault of the names; empty without a fault. The
// names stand in addresses, metrics, logs and ids of jobs.
std::string name_each(std::vector<NamedDatabase>& databases) {
  for (NamedDatabase& database : databases) {
    if (database.name.empty()) database.name = database.options.value("dbname").value_or("");
    if (!is_database_name(database.name)) {
      return '\'' + database.name +
             "' is no name for one of several databases: give NAME=DSN with a NAME of a-z, 0-9, _ "
             "and -";
    }
    const auto same =
        std::count_if(databases.begin(), databases.end(),
                      [&](const NamedDatabase& other) { return other.name == database.name; });
    if (same > 1) {
      return "two databases are named '" + database.name +
             "': give each a NAME of its own, as NAME=DSN";
    }
  }
  return {};
}

}  // namespace

std::variant<ConnectOptions, std::string> ConnectOptions::read(const std::string& database,
                                                               const std::string& application_name,
                                                               Server server) {
  ConninfoPtr said;
  if (is_connection_string(database)) {
    char* error = nullptr;
    said.reset(PQconninfoParse(database.c_str(), &error));
    const std::unique_ptr<char, void (*)(void*)> owned(error, PQfreemem);
    // Not the string itself: the string may hold a password.
    if (!said) return std::string(error == nullptr ? "out of memory" : error);
  }
  const ConninfoPtr defaults = read_defaults(value_in(said.get(), "service"));
  const auto find = [&](std::string_view keyword) {
    auto value = value_in(said.get(), keyword);
    return value ? value : value_in(defaults.get(), keyword);
  };

  if (std::string problem = port_problem(find("port").value_or("")); !problem.empty())
    return problem;
  ConnectOptions options;
  const auto add = [&](std::string_view keyword, const std::string& value) {
    options.list_.push_back({std::string(keyword), value});
  };
  for (const PQconninfoOption* option = said.get(); option != nullptr && option->keyword != nullptr;
       ++option) {
    if (option->val != nullptr && !is_host_list(option->keyword)) add(option->keyword, option->val);
  }
  if (!said && !database.empty()) add("dbname", database);
  for (const std::string_view keyword : kHostLists) {
    if (const auto value = find(keyword)) add(keyword, *value);
  }
  for (const auto& [keyword, value] : kKeepalives) {
    if (!find(keyword)) add(keyword, value);
  }
  // "any" also is libpq's word for "not set". For libpq, a server whose default is read-only does
  // not count as "read-write"; this program's sessions set the default themselves, so only a
  // primary matters.
  const auto wanted = value_in(said.get(), "target_session_attrs");
  const std::string usual = value_in(defaults.get(), "target_session_attrs").value_or("any");
  if (wanted.value_or(usual) == "read-write" ||
      (server == Server::primary && !wanted && usual == "any")) {
    add("target_session_attrs", "primary");
  }
  // libpq would read the environment at each connection, and the password does not stay there.
  const auto password = find("password");
  if (password && !value_in(said.get(), "password")) add("password", *password);
  const int seconds = std::atoi(find("connect_timeout").value_or("0").c_str());
  if (seconds > 0) options.deadline_ = std::chrono::seconds(seconds);
  add("fallback_application_name", application_name);
  add("client_encoding", "UTF8");
  return options;
}

bool ConnectOptions::is_keyword(std::string_view name) {
  static const ConninfoPtr kOptions(PQconninfoParse("", nullptr));
  for (const PQconninfoOption* option = kOptions.get();
       option != nullptr && option->keyword != nullptr; ++option) {
    if (option->keyword == name) return true;
  }
  return false;
}

void ConnectOptions::forget_password() {
  char* password = std::getenv(kPassword);
  if (password == nullptr) return;
  explicit_bzero(password, std::strlen(password));
  unsetenv(kPassword);
}

ConnectOptions ConnectOptions::at(const std::string& host, const std::string& port) const {
  ConnectOptions other = *this;
  std::erase_if(other.list_, [](const Option& option) { return is_host_list(option.keyword); });
  other.list_.push_back({"host", host});
  other.list_.push_back({"port", port});
  return other;
}

std::optional<std::string> ConnectOptions::value(std::string_view keyword) const {
  for (const Option& option : list_) {
    if (option.keyword == keyword) return option.value;
  }
  return std::nullopt;
}

void ConnectOptions::rotate_hosts() {
  for (Option& option : list_) {
    const std::size_t comma = option.value.find(',');
    if (!is_host_list(option.keyword) || comma == std::string::npos) continue;
    option.value = option.value.substr(comma + 1) + ',' + option.value.substr(0, comma);
  }
}

bool ConnectOptions::has_several_hosts() const {
  return std::any_of(list_.begin(), list_.end(), [](const Option& option) {
    return (option.keyword == "host" || option.keyword == "hostaddr") &&
           option.value.find(',') != std::string::npos;
  });
}

bool is_database_name(std::string_view name) {
  constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  return !name.empty() && name.find_first_not_of(kCharacters) == std::string_view::npos;
}

DatabaseOption parse_database(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return {{}, text};
  const std::string name = text.substr(0, equals);
  if (!is_database_name(name) || ConnectOptions::is_keyword(name)) return {{}, text};
  return {name, text.substr(equals + 1)};
}

std::variant<std::vector<NamedDatabase>, std::string> read_databases(
    const std::vector<DatabaseOption>& databases, const std::string& application_name,
    ConnectOptions::Server server) {
  std::vector<NamedDatabase> named;
  for (const DatabaseOption& option : databases) {
    auto options = ConnectOptions::read(option.text, application_name, server);
    if (auto* problem = std::get_if<std::string>(&options)) return std::move(*problem);
    named.push_back({option.name, std::get<ConnectOptions>(std::move(options))});
  }
  if (named.size() == 1) return named;
  if (std::string problem = name_each(named); !problem.empty()) return problem;
  return named;
}

}  // namespace pulse
