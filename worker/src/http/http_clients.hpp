// The connections of a server, each with the time by which its client must have done what it is to
// do next. The time counts in all, not from byte to byte, so a client that trickles is no better
// off than one that is silent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

namespace pulse {

struct HttpClient {
  using Time = std::chrono::steady_clock::time_point;

  int descriptor = -1;
  std::optional<Time> deadline;
  bool is_between_requests = true;  // or has not said a whole one
};

class HttpClients {
 public:
  explicit HttpClients(std::size_t max_clients) : max_clients_(max_clients) {}
  ~HttpClients();
  HttpClients(const HttpClients&) = delete;
  HttpClients& operator=(const HttpClients&) = delete;

  // Begins to hang up on clients whose time is over.
  void start();

  // A new connection. One that is one too many takes the place of the oldest whose request is not
  // there yet.
  HttpClient* add(int descriptor, std::chrono::milliseconds patience);
  // Before its descriptor is closed.
  void remove(HttpClient* client);

  // The next step must be done within this time; without one the client may take any time.
  void expect(HttpClient* client, std::optional<std::chrono::milliseconds> patience,
              bool is_between_requests);

  std::size_t size() const;

 private:
  static void hang_up(HttpClient& client);
  void make_room();
  void watch();

  const std::size_t max_clients_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<HttpClient> clients_;  // the oldest first
  bool is_ending_ = false;
  std::thread watcher_;
};

}  // namespace pulse
