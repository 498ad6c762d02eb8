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
// Starting a process costs as much as ten sweeps, so a maintainer stays between sweeps while
// processes are plenty. It ends after a while, because settings of the database or role apply only
// to a new process.
constexpr int64 kLongLifeUs = 30 * kSecondUs;
constexpr int64 kShortLifeUs = 2 * kSecondUs;
constexpr int64 kWorthWaitingUs = kSecondUs / 2;  // work due sooner is worth waiting for
constexpr int64 kCheckLocksUs = kSecondUs / 2;
// With sweeps switched off, a maintainer starts only to read the setting again.
constexpr int64 kCheckSettingsUs = 60 * kSecondUs;
constexpr int kBatch = 1000;
constexpr int kPromotionsPerSweep = 16;

constexpr const char kSweep[] =
    "SELECT (s.jobs_requeued OPERATOR(pg_catalog.+) s.jobs_failed"
    " OPERATOR(pg_catalog.+) s.jobs_quarantined)::pg_catalog.int8"
    " FROM pulse.sweep(max_jobs => 1000, dry_run => false) AS s";
constexpr const char kPromote[] =
    "SELECT pulse._promote_marked(256)::pg_catalog.int4::pg_catalog.int8";
constexpr const char kPrune[] = "SELECT pulse._prune(1000)::pg_catalog.int8";

struct Maintainer {
  DatabaseState* database;
  MaintainerState* state;
  bool can_prune;  // false with an older version of the extension, which has no _prune
  int64 began;
  // Work that remains now, whatever is due.
  bool sweep_on;
  int promotions;
  bool prune_on;
};

int64 interval_us() { return settings.sweep_interval_ms * INT64CONST(1000); }

// Time until the next sweep by the interval; negative when it is overdue.
int64 next_interval_in_us(const Maintainer* maintainer) {
  auto last = static_cast<int64>(pg_atomic_read_u64(&maintainer->state->last_sweep));
  return last == 0 ? 0 : last + interval_us() - monotonic_us();
}

[[noreturn]] void end_maintainer(const Maintainer* maintainer, MaintainerEnd end,
                                 int64 next_start) {
  if (maintainer->sweep_on || maintainer->prune_on) {
    // The next maintainer starts at once and does the remaining work.
    pg_atomic_write_u64(&maintainer->state->last_sweep, 0);
    next_start = monotonic_us();
  }
  pg_atomic_write_u64(&maintainer->state->next_start, static_cast<uint64>(next_start));
  pg_atomic_write_u32(&maintainer->state->end, static_cast<uint32>(end));
  proc_exit(0);
}

// Ends the maintainer, unless it may stay until the next work is due.
void end_if_time_is_up(const Maintainer* maintainer, int64 idle_us) {
  bool is_crowded = pg_atomic_read_u32(&shared()->is_crowded) != 0;
  bool may_stay = pg_atomic_read_u32(&shared()->may_stay) != 0;
  int64 now = monotonic_us();
  if ((idle_us > 0 && is_crowded) || (idle_us > kWorthWaitingUs && !may_stay) ||
      now - maintainer->began > (may_stay ? kLongLifeUs : kShortLifeUs))
    end_maintainer(maintainer, MaintainerEnd::kRan, now + idle_us);
}

// Sleeps. Ends the maintainer when another session needs the database alone, or when settings were
// reloaded.
void sleep_idle(const Maintainer* maintainer, int64 idle_us) {
  bool is_reloaded = sleep_in_background(Min(idle_us, kCheckLocksUs));
  if (is_reloaded) end_maintainer(maintainer, MaintainerEnd::kRan, monotonic_us());
  if (is_database_wanted()) end_maintainer(maintainer, MaintainerEnd::kBusy, 0);
}

int64 run(const Maintainer* maintainer, const char* statement) {
  int64 result = 0;
  switch (run_step(maintainer->state, statement, &result)) {
    case StepEnd::kDone: break;
    // The extension may have been created again since: the next maintainer checks.
    case StepEnd::kBusy:
    case StepEnd::kGone: end_maintainer(maintainer, MaintainerEnd::kBusy, 0);
    case StepEnd::kFailed: end_maintainer(maintainer, MaintainerEnd::kFailed, 0);
  }
  return result;
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
  // Sweeps once at the start, so that every table and function is in the caches when the requested
  // sweep is due.
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
      sleep_idle(maintainer, idle_us);
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
                          pulse::monotonic_us() + pulse::kCheckSettingsUs);
  pulse::maintain_database(&maintainer);
}
