#include "background/maintainer.hpp"

#include "background/maintenance_step.hpp"
#include "background/process.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"
#include "server/shared_memory.hpp"
#include "wake/background_wake.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

constexpr int64 kSecondUs = USECS_PER_SEC;
// A new process costs ten sweeps, so where processes are plenty one lives on between sweeps. Not
// for long: what people set for the database counts from the next one on.
constexpr int64 kLongLifeUs = 30 * kSecondUs;
constexpr int64 kShortLifeUs = 2 * kSecondUs;
constexpr int64 kWorthWaitingUs = kSecondUs / 2;  // what falls due sooner is waited for
constexpr int64 kLookForOthersUs = kSecondUs / 2;
// Without sweeps there is nothing to do but to see whether that was changed for the database.
constexpr int64 kLookAtSettingsUs = 60 * kSecondUs;
constexpr int kBatch = 1000;
constexpr int kPromotionsPerSweep = 16;

constexpr const char kSweep[] =
    "SELECT (s.jobs_requeued OPERATOR(pg_catalog.+) s.jobs_failed"
    " OPERATOR(pg_catalog.+) s.jobs_quarantined)::pg_catalog.int8"
    " FROM pulse.sweep(max_jobs => 1000, dry_run => false) AS s";
constexpr const char kPromote[] =
    "SELECT pulse._promote_marked(most => 256)::pg_catalog.int4::pg_catalog.int8";
constexpr const char kPrune[] = "SELECT pulse._prune(most => 1000)::pg_catalog.int8";

struct Maintainer {
  DatabaseState* database;
  MaintainerState* state;
  bool can_prune;  // an older version of the extension has nothing to prune with
  int64 began;
  // What is left to do now, whatever falls due.
  bool sweep_on;
  int promotions;
  bool prune_on;
};

int64 interval_us() { return settings.sweep_interval_ms * INT64CONST(1000); }

// Negative when a sweep is due by its interval.
int64 next_interval_in_us(const Maintainer* maintainer) {
  auto last = static_cast<int64>(pg_atomic_read_u64(&maintainer->state->last_sweep));
  return last == 0 ? 0 : last + interval_us() - monotonic_us();
}

[[noreturn]] void end_maintainer(const Maintainer* maintainer, MaintainerEnd end,
                                 int64 next_start) {
  if (maintainer->sweep_on || maintainer->prune_on) {
    // The next one starts with all of it.
    pg_atomic_write_u64(&maintainer->state->last_sweep, 0);
    next_start = monotonic_us();
  }
  pg_atomic_write_u64(&maintainer->state->next_start, static_cast<uint64>(next_start));
  pg_atomic_write_u32(&maintainer->state->end, static_cast<uint32>(end));
  proc_exit(0);
}

// Unless it is worth to stay.
void end_if_time_is_up(const Maintainer* maintainer, int64 idle_us) {
  bool is_crowded = pg_atomic_read_u32(&shared()->is_crowded) != 0;
  bool may_stay = pg_atomic_read_u32(&shared()->may_stay) != 0;
  int64 now = monotonic_us();
  if ((idle_us > 0 && is_crowded) || (idle_us > kWorthWaitingUs && !may_stay) ||
      now - maintainer->began > (may_stay ? kLongLifeUs : kShortLifeUs))
    end_maintainer(maintainer, MaintainerEnd::kRan, now + idle_us);
}

// Sleeps, and makes way for whoever comes to have the database for himself, and for a maintainer
// with other settings.
void rest(const Maintainer* maintainer, int64 idle_us) {
  bool is_reloaded = sleep_in_background(Min(idle_us, kLookForOthersUs));
  if (is_reloaded) end_maintainer(maintainer, MaintainerEnd::kRan, monotonic_us());
  if (is_in_the_way()) end_maintainer(maintainer, MaintainerEnd::kBusy, 0);
}

int64 run(const Maintainer* maintainer, const char* statement) {
  int64 answer = 0;
  switch (run_step(maintainer->state, statement, &answer)) {
    case StepEnd::kDone: break;
    // What went may have come back since: the next one looks.
    case StepEnd::kBusy:
    case StepEnd::kGone: end_maintainer(maintainer, MaintainerEnd::kBusy, 0);
    case StepEnd::kFailed: end_maintainer(maintainer, MaintainerEnd::kFailed, 0);
  }
  return answer;
}

void sweep(Maintainer* maintainer) {
  int64 now = monotonic_us();
  bool by_interval = next_interval_in_us(maintainer) <= 0;
  maintainer->sweep_on = run(maintainer, kSweep) >= kBatch;
  if (by_interval) {
    pg_atomic_write_u64(&maintainer->state->last_sweep, static_cast<uint64>(now));
    maintainer->prune_on = maintainer->can_prune;
  }
  maintainer->promotions = kPromotionsPerSweep;
}

void maintain_database(Maintainer* maintainer) {
  // Once at the start, whatever falls due: the one that is waited for then finds everything known.
  sweep(maintainer);
  pg_atomic_write_u32(&maintainer->state->has_swept, 1);
  if (!pg_atomic_read_u32(&maintainer->state->is_serving)) wake_background(maintainer->database);
  for (;;) {
    int64 idle_us =
        Max(Min(next_interval_in_us(maintainer), sweep_due_in_us(maintainer->database)), 0);
    if (idle_us == 0 || maintainer->sweep_on) {
      end_if_time_is_up(maintainer, 0);
      sweep(maintainer);
    } else if (maintainer->promotions > 0 && queue_marks_remain()) {
      end_if_time_is_up(maintainer, 0);
      maintainer->promotions--;
      run(maintainer, kPromote);
    } else if (maintainer->prune_on) {
      end_if_time_is_up(maintainer, 0);
      maintainer->prune_on = run(maintainer, kPrune) >= kBatch;
    } else {
      end_if_time_is_up(maintainer, idle_us);
      rest(maintainer, idle_us);
    }
    CHECK_FOR_INTERRUPTS();
  }
}

}  // namespace

BackgroundWorkerHandle* start_maintainer(Oid database, const char* name) {
  BackgroundWorker worker;
  memset(&worker, 0, sizeof(worker));
  snprintf(worker.bgw_name, BGW_MAXLEN, "pg_pulse maintainer of %s", name);
  snprintf(worker.bgw_type, BGW_MAXLEN, "pg_pulse maintainer");
  snprintf(worker.bgw_library_name, BGW_MAXLEN, "pg_pulse");
  snprintf(worker.bgw_function_name, BGW_MAXLEN, "pulse_maintainer_main");
  worker.bgw_flags =
      BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION | kInterruptibleProcess;
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
  worker.bgw_restart_time = BGW_NEVER_RESTART;
  worker.bgw_main_arg = ObjectIdGetDatum(database);
  worker.bgw_notify_pid = MyProcPid;
  BackgroundWorkerHandle* handle = nullptr;
  return RegisterDynamicBackgroundWorker(&worker, &handle) ? handle : nullptr;
}

}  // namespace pulse

extern "C" PGDLLEXPORT void pulse_maintainer_main(Datum database);

void pulse_maintainer_main(Datum database) {
  pulse::start_background_process();
  BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, 0);
  pulse::pin_settings();
  pulse::Maintainer maintainer = {};
  maintainer.began = pulse::monotonic_us();
  bool is_installed = pulse::find_extension(&maintainer.can_prune);
  maintainer.database = pulse::this_database();
  if (!maintainer.database) proc_exit(0);
  maintainer.state = &maintainer.database->maintainer;
  pulse::publish_process(&maintainer.state->process);
  if (!is_installed) pulse::end_maintainer(&maintainer, pulse::MaintainerEnd::kNotInstalled, 0);
  if (pulse::settings.sweep_interval_ms < 0)
    pulse::end_maintainer(&maintainer, pulse::MaintainerEnd::kOff,
                          pulse::monotonic_us() + pulse::kLookAtSettingsUs);
  pulse::maintain_database(&maintainer);
}
