#include "queue_log.hpp"

#include <charconv>
#include <optional>
#include <stdexcept>

#include "report.hpp"

namespace bench {
namespace {

constexpr int kChangesAtOnce = 20000;
constexpr std::string_view kChange = "table pulse.job: ";

// The value of a column as test_decoding prints it: quoted, or a word.
std::optional<std::string_view> value_of(std::string_view change, std::string_view column) {
  std::size_t place = change.find(column);
  if (place == std::string_view::npos) return std::nullopt;
  std::string_view rest = change.substr(place + column.size());
  if (rest.starts_with("null")) return std::nullopt;
  if (rest.starts_with('\'')) return rest.substr(1, rest.find('\'', 1) - 1);
  return rest.substr(0, rest.find(' '));
}

std::int64_t id_of(std::string_view change) {
  std::optional<std::string_view> text = value_of(change, " id[bigint]:");
  std::int64_t id = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), id).ec != std::errc())
    throw std::runtime_error("a change without an id: " + std::string(change));
  return id;
}

}  // namespace

QueueLog::QueueLog(Session* session) : session_(session) {
  session_->script("SELECT pg_create_logical_replication_slot('queue_log', 'test_decoding')");
}

void QueueLog::replay(const std::map<std::string, int>& concurrency) {
  for (;;) {
    Rows rows = session_->run(
        "SELECT data FROM pg_logical_slot_get_changes('queue_log', NULL, $1,"
        " 'include-xids', '0', 'skip-empty-xacts', '1')",
        {std::int64_t{kChangesAtOnce}});
    if (rows.count() == 0) return;
    for (int i = 0; i < rows.count(); i++) read(rows.text(i, 0), concurrency);
  }
}

void QueueLog::read(std::string_view change, const std::map<std::string, int>& concurrency) {
  if (change.starts_with("COMMIT")) {
    judge(concurrency);
    return;
  }
  if (!change.starts_with(kChange)) return;
  // One space stays, so that every column is preceded by one.
  change.remove_prefix(kChange.size());
  std::int64_t id = id_of(change);
  bool ran = jobs_.contains(id) && jobs_.at(id).state == State::kRunning;
  forget(id);
  if (change.starts_with("DELETE")) return;
  std::string_view state = value_of(change, " state[pulse.job_state]:").value_or("?");
  Job job = {std::string(value_of(change, " queue_name[text]:").value_or("")),
             state == "parked"  ? State::kParked
             : state == "ready" ? State::kOpen
                                : State::kRunning};
  starts_ += job.state == State::kRunning && !ran;
  count(job, 1);
  jobs_[id] = job;
}

void QueueLog::forget(std::int64_t id) {
  auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  count(found->second, -1);
  jobs_.erase(found);
}

void QueueLog::count(const Job& job, int by) {
  Places& places = places_[job.queue];
  if (job.state == State::kOpen) places.open += by;
  if (job.state == State::kRunning) places.running += by;
  touched_.insert(job.queue);
}

// Only what a commit leaves counts: within a transaction a swap opens one job before it parks
// another.
void QueueLog::judge(const std::map<std::string, int>& concurrency) {
  commits_++;
  for (const std::string& queue : touched_) {
    if (queue.empty()) continue;
    auto limit = concurrency.find(queue);
    int most = limit == concurrency.end() ? 1 : limit->second;
    const Places& places = places_[queue];
    bool ran = places.running > most;
    bool gave = places.running + places.open > most;
    ran_too_many_ += ran;
    gave_too_many_ += gave;
    if ((ran || gave) && first_breach_.empty())
      first_breach_ = format("%s: %d running, %d open, concurrency %d", queue.c_str(),
                             places.running, places.open, most);
  }
  touched_.clear();
}

}  // namespace bench
