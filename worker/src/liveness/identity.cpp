#include "liveness/identity.hpp"

#include <limits.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "liveness/registration.hpp"
#include "minder/protocol.hpp"
#include <sstream>

namespace pulse {
namespace {

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string read_link(const char* path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = readlink(path, target.data(), target.size());
  return length < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(length));
}

std::string read_stat(pid_t pid) { return read_line("/proc/" + std::to_string(pid) + "/stat"); }

// In a new pid namespace whose /proc was not mounted anew, numbers lead to other processes.
bool proc_is_ours() { return read_link("/proc/self") == std::to_string(getpid()); }

// Empty if the process has ended, even before the parent has waited for it.
std::string start_of(const std::string& stat) {
  // The second field is the command in parentheses and may hold spaces and parentheses itself.
  const std::size_t command_end = stat.rfind(')');
  if (command_end == std::string::npos) return {};
  std::istringstream fields(stat.substr(command_end + 1));
  std::string state;
  fields >> state;
  if (state == "Z" || state == "X") return {};  // dead, only not yet waited for
  constexpr int kStartField = 22;
  constexpr int kStateField = 3;
  std::string field;
  for (int number = kStateField + 1; number <= kStartField; ++number) fields >> field;
  return fields ? field : std::string();
}

}  // namespace

std::string read_hostname() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::string read_process_start(pid_t pid) { return start_of(read_stat(pid)); }

bool is_process_gone(std::int64_t pid, const std::string& process_start) {
  if (pid <= 0 || pid > std::numeric_limits<pid_t>::max()) return false;
  const auto process = static_cast<pid_t>(pid);
  if (kill(process, 0) != 0 && errno == ESRCH) return true;
  const std::string stat = read_stat(process);
  if (stat.empty() || process_start.empty() || !proc_is_ours()) return false;
  return start_of(stat) != process_start;
}

bool has_minders(std::int64_t pid, const std::string& process_start) {
  // The kernel writes an at sign where the name of an abstract socket begins.
  const std::string name =
      std::string(" @") + minder::kPresence + std::to_string(pid) + '.' + process_start + '/';
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (line.find(name) != std::string::npos) return true;
  }
  return !sockets.eof();  // unread, as without a free descriptor
}

Identity read_identity() {
  Identity identity;
  identity.hostname = read_hostname();
  identity.boot_id = read_line("/proc/sys/kernel/random/boot_id");
  identity.pid_namespace = read_link("/proc/self/ns/pid");
  identity.pid = getpid();
  if (proc_is_ours()) identity.process_start = read_process_start(identity.pid);
  return identity;
}

std::string identity_json(const Identity& identity, int slots, bool is_draining, int databases) {
  nlohmann::json info = {{"hostname", identity.hostname},
                         {"boot_id", identity.boot_id},
                         {"pid_namespace", identity.pid_namespace},
                         {"pid", identity.pid},
                         {"process_start", identity.process_start},
                         {"kill_grace_ms", kKillGrace.count()},
                         {"slots", slots},
                         {"version", PULSE_VERSION}};
  if (is_draining) info["draining"] = true;
  if (databases > 1) info["databases_of_slots"] = databases;
  return info.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace pulse
