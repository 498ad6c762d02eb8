#include "observe/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/text/parse_number.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr Duration kStatusPause = 1s;
// More is not kept for a listener that does not read.
constexpr std::size_t kMaxWaiting = 16;

std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  unsetenv(name);
  return text;
}

// The address with its length; only the length ends an abstract address.
std::optional<std::pair<sockaddr_un, socklen_t>> unix_address(const std::string& text) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool is_known = text.size() > 1 && (text[0] == '/' || text[0] == '@');
  if (!is_known || text.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, text.data(), text.size());
  if (text[0] == '@') address.sun_path[0] = '\0';
  return std::pair(address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size()));
}

std::string monotonic_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::to_string(now.tv_sec * 1'000'000 + now.tv_nsec / 1'000);
}

std::string status_of(const WorkerState& state) {
  if (!state.is_established && !state.is_draining) return "registering";
  std::string text = state.is_draining ? "draining, " : "";
  text += std::to_string(state.running) + " of " + std::to_string(state.concurrency) + " running";
  if (!state.databases.empty()) {
    const auto served = std::count_if(state.databases.begin(), state.databases.end(),
                                      [](const WorkerState& each) { return each.is_established; });
    text += ", " + std::to_string(served) + " of " + std::to_string(state.databases.size()) +
            " databases";
  }
  if (state.prefetched > 0) text += ", " + std::to_string(state.prefetched) + " prefetched";
  if (state.worker_id != 0) text += ", worker " + std::to_string(state.worker_id);
  return text;
}

}  // namespace

ServiceManager::Wishes ServiceManager::take_wishes() {
  Wishes wishes;
  wishes.socket = take_variable("NOTIFY_SOCKET");
  const std::string pid = take_variable("WATCHDOG_PID");
  const auto interval = parse_number<std::int64_t>(take_variable("WATCHDOG_USEC"));
  const bool is_for_us = pid.empty() || parse_number<std::int64_t>(pid) == getpid();
  if (is_for_us && interval && *interval > 0) {
    const std::chrono::microseconds exact(*interval);
    wishes.watchdog = std::max<Duration>(1ms, std::chrono::duration_cast<Duration>(exact));
  }
  return wishes;
}

ServiceManager::ServiceManager(const Wishes& wishes, Timers& timers, Log& log) {
  if (wishes.socket.empty()) return;
  if (!unix_address(wishes.socket)) {
    log.warning("notify_socket_unknown", {{"socket", wishes.socket}});
    return;
  }
  socket_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  address_ = wishes.socket;
  if (wishes.watchdog) {
    // At half of the time, as systemd asks: one message may come late.
    watchdog_.emplace(timers, std::max<Duration>(1ms, *wishes.watchdog / 2),
                      [this] { send("WATCHDOG=1"); });
  }
  status_.emplace(timers, kStatusPause, [this] {
    send_waiting();
    tell_status();
  });
}

void ServiceManager::publish(const WorkerState& state) {
  if (!socket_.valid()) return;
  state_ = state;
  if (!has_begun_) {
    has_begun_ = true;
    tell_status();
  }
  if (state.is_established && !was_ready_) {
    was_ready_ = true;
    send("READY=1");
    tell_status();
  }
  if (state.is_draining && !was_stopping_) {
    was_stopping_ = true;
    send("STOPPING=1");
    tell_status();
  }
}

void ServiceManager::begin_reload() {
  send("RELOADING=1\nMONOTONIC_USEC=" + monotonic_microseconds());
}

// A worker that was never ready does not become ready by a reload.
void ServiceManager::end_reload() {
  if (was_ready_) send("READY=1");
}

void ServiceManager::tell_status() {
  std::string status = status_of(state_);
  if (status == last_status_) return;
  last_status_ = std::move(status);
  send("STATUS=" + last_status_);
}

void ServiceManager::send(const std::string& message) {
  if (!socket_.valid()) return;
  waiting_.push_back(message);
  if (waiting_.size() > kMaxWaiting) waiting_.erase(waiting_.begin());
  send_waiting();
}

void ServiceManager::send_waiting() {
  const auto address = unix_address(address_);
  while (!waiting_.empty()) {
    const std::string& message = waiting_.front();
    const ssize_t sent =
        sendto(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address->first), address->second);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)) return;
    waiting_.erase(waiting_.begin());  // also where no listener is left
  }
}

}  // namespace pulse
