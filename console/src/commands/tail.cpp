// pulse tail: recoveries and ends without success, as the jobs end.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "base/log/standard_streams.hpp"
#include "base/postgres/repeats.hpp"
#include "base/text/inert.hpp"
#include "base/text/json_grammar.hpp"
#include "command_line/command_line.hpp"
#include "commands/commands.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

using namespace std::chrono_literals;

constexpr const char* kNow = "SELECT pulse.now() AS now";

// A transaction may commit an end a while after the time of the end, so each reading goes back a
// little.
constexpr const char* kEnded =
    "SELECT id, identifier, state, attempts, max_attempts, worker_id, finished_at"
    " FROM pulse.ended_jobs WHERE finished_at > $1::timestamptz"
    " AND finished_at > pulse.now() - interval '1 minute'"
    " ORDER BY finished_at DESC LIMIT 1000";

const Columns kEndedColumns{
    {"", "finished_at", Kind::time},
    {"", "state", Kind::state},
    {"", "id", Kind::id},
    {"", "identifier"},
    {"", "attempts", Kind::number},
    {"", "max_attempts", Kind::number},
    {"", "worker_id", Kind::id},
};

constexpr auto kInterval = 1s;

// The ids that were shown last, so that no end is shown twice.
class ShownEnds {
 public:
  bool is_new(const std::string& id) {
    constexpr std::size_t kMax = 10'000;
    if (!ids_.insert(id).second) return false;
    order_.push_back(id);
    if (order_.size() > kMax) {
      ids_.erase(order_.front());
      order_.pop_front();
    }
    return true;
  }

 private:
  std::set<std::string> ids_;
  std::deque<std::string> order_;
};

std::string text_at(const nlohmann::json& event, const char* key) {
  const auto found = event.find(key);
  if (found == event.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string ids_of(const nlohmann::json& event) {
  std::string text;
  const auto ids = event.find("job_ids");
  if (ids == event.end() || !ids->is_array()) return text;
  for (const auto& id : *ids) text += (text.empty() ? "" : ", ") + id.dump();
  return text;
}

// Any role may notify, so nothing of an event is taken for granted.
std::string event_line(const std::string& now, const std::string& payload, bool is_json,
                       const Style& style) {
  if (is_json) {
    const auto is_control = [](unsigned char c) { return c < ' '; };
    const bool is_line =
        pulse::is_json(payload) && std::none_of(payload.begin(), payload.end(), is_control);
    return is_line ? inert_json(payload) + '\n' : std::string();
  }
  const auto event = nlohmann::json::parse(payload, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) return spell_time(now) + "  " + inert(payload) + '\n';
  std::string line = spell_time(now) + "  " +
                     style.tinted(inert(text_at(event, "event")), Tint::warning) + "  " +
                     inert(text_at(event, "cause")) + "  jobs " + inert(ids_of(event));
  if (const std::string worker = text_at(event, "worker"); !worker.empty()) {
    line += " of worker " + inert(worker);
  }
  if (const std::string reason = text_at(event, "reason"); !reason.empty()) {
    line += " (" + inert(reason) + ')';
  }
  return line + '\n';
}

std::string ended_line(const QueryResult::Row& job, bool is_json, const Style& style) {
  if (is_json) return inert_json(json_of(kEndedColumns, job)) + '\n';
  const std::string state = inert(job.text("state"));
  return shown(kEndedColumns, "finished_at", job) + "  " +
         style.tinted(state, tint_of_state(state)) + "  job " + job.text("id") + "  " +
         inert(job.text("identifier")) + "  attempt " + job.text("attempts") + " of " +
         job.text("max_attempts") + '\n';
}

// False: standard output takes no more.
bool print_now(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0;
}

// An outage. The command reports the beginning, each half minute, and the end of the outage.
class Outage {
 public:
  void goes_on(const std::string& reason) {
    if (repeats_.level_of(reason, BootClock::now()) == LogLevel::debug) return;
    std::fprintf(stderr, "pulse: %s\n", inert(reason).c_str());
    is_told_ = true;
  }
  void is_over() {
    if (is_told_) std::fputs("pulse: the database answers again\n", stderr);
    is_told_ = false;
    repeats_.forget();
  }

 private:
  Repeats repeats_;
  bool is_told_ = false;
};

// Until the output is lost; throws Unreachable.
void follow(Console& console, Outage& outage, ShownEnds& shown_ids, const std::string& since) {
  const bool is_json = console.options.is_json;
  const Style& style = console.output.style();
  console.database.query("LISTEN pulse_events");
  bool has_read = false;
  auto next_reading = std::chrono::steady_clock::now();
  for (;;) {
    const auto left =
        std::chrono::duration_cast<Duration>(next_reading - std::chrono::steady_clock::now());
    const auto event = console.database.wait_for_notification(std::max(left, Duration(0)));
    if (event) {
      const QueryResult now = console.database.query(kNow);
      if (!print_now(event_line(now[0].text("now"), *event, is_json, style))) return;
    }
    // Events that come without a pause keep no end back.
    if (std::chrono::steady_clock::now() < next_reading) continue;
    next_reading = std::chrono::steady_clock::now() + kInterval;
    const QueryResult ended = console.database.query(kEnded, {since});
    // Sessions that the server ends at once, again and again, are one outage.
    if (std::exchange(has_read, true)) outage.is_over();
    for (std::size_t i = ended.size(); i > 0; --i) {
      const auto job = ended[i - 1];
      if (!shown_ids.is_new(job.text("id") + ' ' + job.text("finished_at"))) continue;
      if (!print_now(ended_line(job, is_json, style))) return;
    }
  }
}

// Runs until an interrupt; the database may go away and come back.
ExitStatus tail(Console& console) {
  // Without this check the command would notice the closed output with the first event, which may
  // be hours away.
  if (is_output_closed(STDOUT_FILENO)) {
    std::fputs("pulse: standard output is closed\n", stderr);
    return ExitStatus::output_lost;
  }
  Outage outage;
  ShownEnds shown_ids;
  const std::string since = console.database.query(kNow)[0].text("now");
  for (;;) {
    try {
      follow(console, outage, shown_ids, since);
      return ExitStatus::output_lost;
    } catch (const Unreachable& unreachable) {
      outage.goes_on(unreachable.what());
    }
    std::this_thread::sleep_for(kInterval);
  }
}

}  // namespace

void add_tail(CommandLine& line) {
  line.add("tail", "Recoveries and failures as they happen, until it is interrupted", tail);
}

}  // namespace pulse::console
