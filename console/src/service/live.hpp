// Streams of server-sent events. All clients that ask the same with the same rights share a feed:
// one reading of the database serves them all. A feed without clients reads nothing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/http/stream.hpp"
#include "database/pace.hpp"
#include "serve/router.hpp"
#include "service/site.hpp"

namespace pulse::console {

// An event in the format of the protocol.
std::string event_text(std::string_view name, std::string_view data);

class Live {
 public:
  using Admits = std::function<bool(const Access& access)>;

  explicit Live(Admits admits);
  ~Live();
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;

  // Begins no further reading. A reading by a thread of the pool uses this object until the reading
  // ends.
  void stop();

  // Returns the stream for a client of the site. Throws Failed where there are too many streams, of
  // the client's token or in all. The site and its route must outlive this object.
  std::shared_ptr<HttpStream> listen(Site& site, const Route& route, const Request& request);

 private:
  using Time = std::chrono::steady_clock::time_point;

  struct Listener {
    std::shared_ptr<HttpStream> stream;
    Time end;
  };
  struct Feed {
    Site* site = nullptr;
    const Route* route = nullptr;
    Request request;
    std::list<Listener> listeners;
    std::string last_event;
    Time due;
    Time last_sent;
    bool is_reading = false;
    Pace pace{std::chrono::seconds(1)};  // of the thread that reads
  };
  using FeedPtr = std::shared_ptr<Feed>;

  void watch();
  void read_due_feeds();
  void read(const FeedPtr& feed, LentSession& session);
  void send_event(Feed& feed, const std::string& event);
  std::size_t count() const;
  std::size_t count_of(const std::string& token) const;

  const Admits admits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, FeedPtr> feeds_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace pulse::console
