#include "worker_sessions.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/postgres/session_settings.hpp"
#include "session/statements.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

// How long each connection may be refused after one was accepted.
constexpr Duration kRefusalPatience = 1min;

SessionConfig session_config(const char* name, Duration open_deadline,
                             const char* statement_timeout) {
  SessionConfig config;
  config.name = name;
  config.open_deadline = open_deadline;
  // A beat is short. Payloads and results may be long.
  config.waits_for_bytes = std::string_view(name) != "heartbeat";
  // The other sessions follow this session.
  if (!config.waits_for_bytes) config.max_reconnect_delay = 2s;
  config.settings = statements::own_settings();
  config.settings.emplace_back("statement_timeout", statement_timeout);
  // A backend whose client is gone must not stay.
  config.settings.emplace_back("client_connection_check_interval", "5s");
  return config;
}

}  // namespace

WorkerSessions::WorkerSessions(const Connections& connections, Duration open_deadline,
                               Timers& timers, const Random& random, Log& log)
    : claim(session_config("claim", open_deadline, "0"), connections.claim, timers,
            Reconnect(random), log),
      finish(session_config("finish", open_deadline, "60s"), connections.finish, timers,
             Reconnect(random), log),
      heartbeat(session_config("heartbeat", open_deadline, "60s"), connections.heartbeat, timers,
                Reconnect(random), log),
      timers_(timers),
      log_(log) {
  for (Session* session : all()) wire(*session);
  for (Session* session : {&claim, &finish}) session->follow(heartbeat);
  finish.borrow_from(claim);
}

void WorkerSessions::wire(Session& session) {
  session.on_refused = [this](const std::string& reason) {
    if (are_refused_for_good() && on_refused) on_refused(reason);
  };
  session.on_unreadable = [this](const std::string& reason) {
    if (on_unreadable) on_unreadable(reason);
  };
  session.on_notice = [this](const Notice& notice) {
    if (on_notice) on_notice(notice);
  };
  session.on_pooled = [this] { tell_pooled(); };
}

// A server that has accepted this worker may refuse it for a moment: rules of access are being
// reloaded, a role's limit is reached, another server is taking over.
bool WorkerSessions::are_refused_for_good() {
  const TimePoint limit = timers_.now() - kRefusalPatience;
  const auto sessions = all();
  const bool was_accepted = std::any_of(sessions.begin(), sessions.end(),
                                        [](const Session* session) { return session->was_open(); });
  return !was_accepted ||
         std::all_of(sessions.begin(), sessions.end(), [limit](const Session* session) {
           const auto since = session->refused_since();
           return !session->is_wanted() || (since && *since <= limit);
         });
}

void WorkerSessions::tell_pooled() {
  if (std::exchange(is_pooled_told_, true)) return;
  log_.warning("pooled", {{"hint",
                           "a pooler stands between: the worker asks for jobs at each "
                           "pulse.poll_interval, and its end is noticed by its silence only"}});
}

void WorkerSessions::set_reconnect_cap(Duration cap) {
  for (Session* session : all()) session->set_reconnect_cap(cap);
}

void WorkerSessions::close() {
  for (Session* session : all()) session->close();
}

}  // namespace pulse
