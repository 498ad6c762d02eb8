#include "service/live.hpp"

#include <algorithm>

#include "base/http/status.hpp"
#include "base/loop/signals_blocked.hpp"
#include "database/pace.hpp"
#include "html/url.hpp"

namespace pulse::console {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t kMaxListeners = 256;
// So no token keeps the pages of others from listening.
constexpr std::size_t kMaxOfToken = 32;
// At the end of a stream the browser asks again, and the server checks the browser's token again.
constexpr std::chrono::minutes kLifetime(10);
// The server notices a client that has gone when it sends to the client.
constexpr std::chrono::seconds kSilence(15);
constexpr std::chrono::milliseconds kStep(100);

std::string key_of(const Request& request) {
  return request.access.token + '\n' + request.access.role + '\n' + request.node + '\n' +
         request.http.target;
}

// The time that the session's server has worked; a request about all nodes has no session.
std::chrono::microseconds worked_for(const Request& request) {
  return request.session == nullptr ? std::chrono::microseconds(0) : request.session->worked();
}

}  // namespace

std::string event_text(std::string_view name, std::string_view data) {
  std::string text;
  if (!name.empty()) text = "event: " + std::string(name) + '\n';
  for (;;) {
    const std::size_t end = std::min(data.find_first_of("\r\n"), data.size());
    text += "data: ";
    text += data.substr(0, end);
    text += '\n';
    if (end == data.size()) break;
    data.remove_prefix(end + (data.substr(end, 2) == "\r\n" ? 2 : 1));
  }
  return text + '\n';
}

Live::Live(Admits admits) : admits_(std::move(admits)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { watch(); });
}

Live::~Live() {
  stop();
  for (const auto& [key, feed] : feeds_) {
    for (const Listener& listener : feed->listeners) listener.stream->close();
  }
}

void Live::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::size_t Live::count() const {
  std::size_t listeners = 0;
  for (const auto& [key, feed] : feeds_) listeners += feed->listeners.size();
  return listeners;
}

std::size_t Live::count_of(const std::string& token) const {
  std::size_t listeners = 0;
  for (const auto& [key, feed] : feeds_) {
    if (feed->request.access.token == token) listeners += feed->listeners.size();
  }
  return listeners;
}

std::shared_ptr<HttpStream> Live::listen(Site& site, const Route& route, const Request& request) {
  const std::lock_guard lock(mutex_);
  if (count() >= kMaxListeners) {
    refuse(http_status::kUnavailable, "too many pages listen", "Close some.");
  }
  const Access& access = request.access;
  if (access.has_token() && count_of(access.token) >= kMaxOfToken) {
    refuse(http_status::kTooManyRequests, "too many pages of token " + access.token + " listen",
           "Close some.");
  }
  FeedPtr& feed = feeds_[key_of(request)];
  if (!feed) {
    feed = std::make_shared<Feed>();
    feed->site = &site;
    feed->route = &route;
    feed->pace = Pace(route.interval);
    feed->request = request;
  }
  // The last event may be older than the page of the new listener: all listeners get the present
  // text.
  feed->last_event.clear();
  feed->due = Steady::now();
  auto stream = std::make_shared<HttpStream>();
  stream->send("retry: 2000\n\n");
  feed->listeners.push_back({stream, Steady::now() + kLifetime});
  changed_.notify_all();
  return stream;
}

void Live::watch() {
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    if (feeds_.empty()) {
      changed_.wait(lock);
      continue;
    }
    read_due_feeds();
    changed_.wait_for(lock, kStep);
  }
}

void Live::read_due_feeds() {
  const auto now = Steady::now();
  for (auto entry = feeds_.begin(); entry != feeds_.end();) {
    const FeedPtr feed = entry->second;
    const bool is_kept_out = feed->due <= now && !admits_(feed->request.access);
    feed->listeners.remove_if([&](const Listener& listener) {
      if (listener.end <= now || is_kept_out) listener.stream->close();
      return !listener.stream->is_open();
    });
    if (feed->listeners.empty()) {
      entry = feeds_.erase(entry);
      continue;
    }
    ++entry;
    if (feed->is_reading || feed->due > now) continue;
    feed->due = now + feed->route->interval;
    feed->is_reading =
        feed->site->quick().add([this, feed](LentSession& session) { read(feed, session); });
  }
}

// On a thread of the pool.
void Live::read(const FeedPtr& feed, LentSession& session) {
  const auto began = Steady::now();
  std::string event;
  auto pause = feed->route->interval;
  const AddressesOfNode addresses(feed->request.node);
  try {
    Request request = feed->request;
    request.session = session.lend(request.access, false);
    const auto worked = worked_for(request);
    event = event_text("", feed->route->producer(request));
    pause = feed->pace.pause_after(worked_for(request) - worked);
  } catch (const Unreachable& unreachable) {
    feed->site->log_unreachable(unreachable.what());
    event = event_text("trouble", kUnreachable);
  } catch (const std::exception& error) {
    event = event_text("trouble", error.what());
  }
  const std::lock_guard lock(mutex_);
  feed->is_reading = false;
  feed->due = std::max(feed->due, began + pause);
  send_event(*feed, event);
}

void Live::send_event(Feed& feed, const std::string& event) {
  const auto now = Steady::now();
  const bool is_news = event != feed.last_event;
  if (!is_news && now - feed.last_sent < kSilence) return;
  feed.last_sent = now;
  feed.last_event = event;
  for (const Listener& listener : feed.listeners) {
    listener.stream->send(is_news ? event : ":\n\n");
  }
}

}  // namespace pulse::console
