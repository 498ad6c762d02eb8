#include "job/operation_steps.hpp"

#include <algorithm>
#include <utility>

namespace pulse::console {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

#define PULSE_OPERATION                                                                      \
  "SELECT id, action, state, changed, skipped, undoes, skipped_because,"                     \
  " (SELECT string_agg(r.value || ': ' || r.key, '; ' ORDER BY r.value::bigint DESC, r.key)" \
  " FROM json_each_text(skipped_because) AS r) AS reasons FROM "
constexpr const char* kStep = PULSE_OPERATION "pulse.run_operation($1::bigint, $2::int)";
constexpr const char* kStop = PULSE_OPERATION "pulse.stop_operation($1::bigint)";

constexpr milliseconds kQuickStep(100);
constexpr milliseconds kSlowStep(250);
constexpr int kFewestJobs = 10;
constexpr int kMostJobs = 1000;

}  // namespace

void StepSize::note_step(milliseconds took) noexcept {
  if (took < kQuickStep) jobs_ = std::min(2 * jobs_, kMostJobs);
  if (took > kSlowStep) jobs_ = std::max(jobs_ / 2, kFewestJobs);
}

OperationSteps::OperationSteps(Database& database, std::string id)
    : database_(database), id_(std::move(id)) {}

QueryResult OperationSteps::run() {
  const auto start = Clock::now();
  QueryResult step = database_.query(kStep, {id_, std::to_string(size_.jobs())});
  size_.note_step(std::chrono::duration_cast<milliseconds>(Clock::now() - start));
  return step;
}

QueryResult run_steps(Database& database, const std::string& id, milliseconds moment) {
  const auto end = Clock::now() + moment;
  for (OperationSteps steps(database, id);;) {
    QueryResult step = steps.run();
    if (step[0].text("state") != "running" || Clock::now() >= end) return step;
  }
}

QueryResult end_operation(Database& database, const std::string& id) {
  return database.query(kStop, {id});
}

}  // namespace pulse::console
