// HTTP clients: the connections of a server, each with the time by which the client must have done
// the next step. The time counts in all, not from byte to byte, so a client that trickles is no
// better off than a silent client.
//
// Invariants:
// - `mutex_` guards `clients_` and `is_ending_`.
// - A client in `clients_` has an open descriptor: the watcher and add() only hang up, and the
//   server's thread removes a client before closing the descriptor.
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
  bool is_between_requests = true;  // or has not sent a whole request
};

class HttpClients {
 public:
  explicit HttpClients(std::size_t max_clients) : max_clients_(max_clients) {}
  ~HttpClients();
  HttpClients(const HttpClients&) = delete;
  HttpClients& operator=(const HttpClients&) = delete;

  // Begins to hang up on clients whose time is over.
  void start();

  // A new connection. A connection beyond the limit takes the place of the oldest connection whose
  // request is not there yet.
  HttpClient* add(int descriptor, std::chrono::milliseconds patience);
  // Before the client's descriptor is closed.
  void remove(HttpClient* client);

  // The next step must be done within `patience`; without `patience` the client may take any time.
  void expect(HttpClient* client, std::optional<std::chrono::milliseconds> patience,
              bool is_between_requests);

  std::size_t size() const;

 private:
  static void hang_up(HttpClient& client);
  void hang_up_oldest();
  void watch();

  const std::size_t max_clients_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<HttpClient> clients_;  // the oldest first
  bool is_ending_ = false;
  std::thread watcher_;
};

}  // namespace pulse
