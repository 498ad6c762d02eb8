#include "base/http/clients.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "base/loop/signals_blocked.hpp"

namespace pulse {
namespace {

using Steady = std::chrono::steady_clock;

// Deadlines are kept to within this, so that a crowd of clients does not wake the watcher for each.
constexpr std::chrono::milliseconds kStep(100);

}  // namespace

void HttpClients::start() {
  const SignalsBlocked blocked;
  watcher_ = std::thread([this] { watch(); });
}

HttpClients::~HttpClients() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

HttpClient* HttpClients::add(int descriptor, std::chrono::milliseconds patience) {
  const std::lock_guard lock(mutex_);
  if (clients_.size() >= max_clients_) hang_up_oldest();
  clients_.push_back({descriptor, Steady::now() + patience, true});
  if (clients_.size() == 1) changed_.notify_all();
  return &clients_.back();
}

void HttpClients::remove(HttpClient* client) {
  const std::lock_guard lock(mutex_);
  clients_.remove_if([&](const HttpClient& each) { return &each == client; });
}

void HttpClients::expect(HttpClient* client, std::optional<std::chrono::milliseconds> patience,
                         bool is_between_requests) {
  const std::lock_guard lock(mutex_);
  client->is_between_requests = is_between_requests;
  client->deadline.reset();
  if (patience) client->deadline = Steady::now() + *patience;
}

std::size_t HttpClients::size() const {
  const std::lock_guard lock(mutex_);
  return clients_.size();
}

// The server sees that the socket has ended, and removes the client.
void HttpClients::hang_up(HttpClient& client) {
  shutdown(client.descriptor, SHUT_RDWR);
  client.deadline.reset();
  client.is_between_requests = false;
}

void HttpClients::hang_up_oldest() {
  const auto oldest = std::find_if(clients_.begin(), clients_.end(),
                                   [](const HttpClient& each) { return each.is_between_requests; });
  if (oldest != clients_.end()) hang_up(*oldest);
}

void HttpClients::watch() {
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    if (clients_.empty()) {
      changed_.wait(lock);
      continue;
    }
    changed_.wait_for(lock, kStep, [this] { return is_ending_; });
    const auto now = Steady::now();
    for (HttpClient& client : clients_) {
      if (client.deadline && *client.deadline <= now) hang_up(client);
    }
  }
}

}  // namespace pulse
