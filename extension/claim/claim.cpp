// pulse.claim: hands out the best due jobs. A cursor per task walks the claim index; the claim
// merges the cursors by (priority, run_at, id). The claim locks each row without waiting, updates
// it and returns it. No planner takes part, so wrong statistics cannot make a claim slow.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "claim/claim.hpp"
#include "claim/claiming_worker.hpp"
#include "claim/due_scan.hpp"
#include "claim/in_place_claim.hpp"
#include "claim/low_water_mark.hpp"
#include "claim/token.hpp"
#include "install/installation.hpp"
#include "job/table.hpp"
#include "job/task_settings.hpp"
#include "limit/queue_marks.hpp"
#include "liveness/clock.hpp"
#include "queue/parked_jobs.hpp"
#include "queue/promote.hpp"
#include "queue/remembered_queue.hpp"
#include "server/call_checks.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/prepared_notes.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

constexpr int kMaxJobs = 10000;
// Each promoted queue keeps an advisory lock until the transaction ends, and a session may hold 64
// by default (max_locks_per_transaction).
constexpr int kMaxPromotions = kMaxPlaced;
constexpr int kMinPromotionMarks = 32;

// --- which jobs the worker may get ------------------------------------------------------------

bool has_forbidden_flag(const Claim* claim, TupleTableSlot* row) {
  if (claim->forbidden_count == 0 || slot_attisnull(row, kJobFlags)) return false;
  MemoryContextReset(claim->row_context);
  MemoryContext old = MemoryContextSwitchTo(claim->row_context);
  int count;
  Datum* flags = text_elements(DatumGetArrayTypeP(value_of(row, kJobFlags)), "flags", &count);
  bool found = false;
  for (int i = 0; i < count && !found; i++)
    for (int j = 0; j < claim->forbidden_count && !found; j++)
      found = is_same_text(flags[i], claim->forbidden_flags[j]);
  MemoryContextSwitchTo(old);
  return found;
}

// A job may wait at its worker when it has no queue and a further attempt after this one.
bool may_be_prefetched(TupleTableSlot* row) {
  return slot_attisnull(row, kJobQueueName) &&
         int2_of(row, kJobAttempts) + 1 < int2_of(row, kJobMaxAttempts);
}

// --- handing out --------------------------------------------------------------------------------

void return_row(Claim* claim, TupleTableSlot* row, const TaskSettings& task) {
  Datum values[kClaimedColumns];
  bool nulls[kClaimedColumns];
  slot_getsomeattrs(row, claimed_from());
  read_claimed(row->tts_values, row->tts_isnull, task, values, nulls);
  tuplestore_putvalues(claim->results->setResult, claim->results->setDesc, values, nulls);
}

// Three kinds of jobs are not claimed in place. A job with a key: the indexes on keys tell running
// jobs from waiting jobs. A job with start_by: the index of jobs that may expire has no running
// job. A job with crashes: it may run isolated, so the index has it from the start.
bool may_stay_in_place(const Claim* claim, TupleTableSlot* row) {
  return claim->stays_in_place && slot_attisnull(row, kJobKey) && int2_of(row, kJobCrashes) == 0 &&
         !has_start_by(row) && DatumGetObjectId(value_of(row, kJobState)) == catalog()->state_ready;
}

// False when the claim leaves the job to other claims. The claim ends at a job that must start:
// jobs prefetched beyond would start before this job (P8).
bool consider(Claim* claim, TaskCursor* cursor) {
  Fit fit = fit_of_row(claim, cursor, 0);
  if (fit == Fit::kIsolated) consider_poison_suspect(claim, cursor);
  if (fit == Fit::kMustStart) claim->closed = true;
  if (fit != Fit::kGood) return false;
  publish_walk(cursor);
  note_claimed(cursor->bit);
  return take_row(claim, cursor, cursor->scan.row->tts_tid);
}

bool serves(const ClaimingWorker& worker, Datum identifier) {
  if (worker.task_count == kEveryTask) return true;
  if (!((worker.task_bits >> task_bit(DatumGetTextPP(identifier))) & 1)) return false;
  for (int i = 0; i < worker.task_count; i++)
    if (is_same_text(worker.tasks[i], identifier)) return true;
  return false;
}

// Whether a parked job may be placed. Promotion opens a poison suspect or a job with start_by
// instead, so that claims can isolate the suspect and sweeps can expire the job.
bool may_place(void* placing, TupleTableSlot* row) {
  auto* claim = static_cast<Claim*>(placing);
  return int2_of(row, kJobCrashes) == 0 && !has_start_by(row) &&
         serves(claim->worker, value_of(row, kJobIdentifier)) && !has_forbidden_flag(claim, row);
}

// Another transaction has locked the job meanwhile, so the job's queue and levels get the place
// back.
void lose_place(const PlacedJob& job) {
  forget_queue(job.queue_name);
  note_place_freed(place_in_queue(DatumGetTextPP(job.queue_name)));
}

// Hands out the current job of the cursor, or leaves the job to other claims.
void use_row(Claim* claim, TaskCursor* cursor) {
  if (skip_claimed(claim, cursor) || take_range(claim, cursor)) return;
  if (!consider(claim, cursor)) leave_row(&cursor->scan);
  cursor->due = next_due(&cursor->scan);
}

// Hands out the first placed job. The claim ends at a placed job that cannot start, as in
// consider().
void use_placed(Claim* claim) {
  claim->closed = claim->claimed >= claim->start_jobs;
  if (claim->closed) return;
  const PlacedJob& job = claim->placed.job[claim->next_placed++];
  if (!take_row(claim, cursor_of(claim, job.identifier), job.tid)) lose_place(job);
}

// Opens the placed jobs that this claim does not take, for other claims.
void open_placed(Claim* claim) {
  while (claim->next_placed < claim->placed.count) {
    const PlacedJob& job = claim->placed.job[claim->next_placed++];
    if (!open_job(&claim->table, job.tid))
      lose_place(job);
    else if (job.was_met)
      return_promotion_mark(job.bucket);
  }
}

void hand_out(Claim* claim) {
  check_isolated_job(claim);
  if (claim->closed) return;
  open_cursors(claim);
  while (claim->claimed < claim->max_jobs && !claim->closed) {
    TaskCursor* cursor = best_cursor(claim);
    if (is_placed_first(claim, cursor)) {
      use_placed(claim);
      continue;
    }
    if (!cursor) break;
    use_row(claim, cursor);
    if (!cursor->due) close_cursor(claim, cursor);
  }
  close_cursors(claim);
  // This worker may be busy from here on; the waiter that wakes reads the other names.
  if (claim->leaves_names && claim->claimed > 0 && was_woken()) note_more(0);
}

// --- the call -----------------------------------------------------------------------------------

void require_claims_on() {
  if (!settings.claims)
    ereport(ERROR, (errcode(kClaimsOff), errmsg("this server hands out no jobs"),
                    errdetail("The setting pulse.claims is off."),
                    errhint("Set pulse.claims = on where jobs are to run.")));
  require_adopted();
}

void check_admission() {
  PreventCommandIfReadOnly("claim");
  PreventCommandDuringRecovery("claim");
  if (IsolationUsesXactSnapshot())
    ereport(ERROR, (errcode(kWrongIsolation), errmsg("claim needs isolation level READ COMMITTED"),
                    errdetail("Under another level it could not step over rows that others took."),
                    errhint("SET TRANSACTION ISOLATION LEVEL READ COMMITTED.")));
  require_claims_on();
}

int checked_count(FunctionCallInfo fcinfo, int argument, const char* name, int least, int unset) {
  if (PG_ARGISNULL(argument)) return unset;
  int value = PG_GETARG_INT32(argument);
  if (value < least || value > kMaxJobs)
    ereport(ERROR, (errcode(kOutOfRange), errmsg("%s is %d, out of range", name, value),
                    errhint("It must be between %d and %d.", least, kMaxJobs)));
  return value;
}

void read_arguments(Claim* claim, FunctionCallInfo fcinfo) {
  if (PG_ARGISNULL(0))
    ereport(ERROR, (errcode(kOutOfRange), errmsg("worker_id must not be null"),
                    errhint("Use the id that pulse.register_worker() returned.")));
  claim->max_jobs = checked_count(fcinfo, 1, "max_jobs", 1, 1);
  claim->start_jobs = checked_count(fcinfo, 4, "start_jobs", 0, claim->max_jobs);
  if (!PG_ARGISNULL(3))
    claim->forbidden_flags =
        text_elements(PG_GETARG_ARRAYTYPE_P(3), "forbidden_flags", &claim->forbidden_count);
}

// Promotes queues for no more jobs than this claim can take; the next claim promotes the rest.
Promotion promote_for(Claim* claim) {
  Promotion found = {};
  if (is_first_check_due()) found = continue_first_check();
  mark_queues_fallen_due();
  int places = Min(claim->max_jobs, kMaxPromotions);
  claim->placed.claim = claim;
  claim->placed.may_claim = may_place;
  Promotion left =
      promote_marked(places, Max(places, kMinPromotionMarks), &claim->levels, &claim->placed);
  return {left.more || found.more, left.busy || found.busy};
}

// Publishes the notes of prepared transactions that have ended since. Runs before the promotions
// and the snapshot of the claim, which then see the jobs of these transactions.
void publish_prepared() {
  PreparedNotes notes;
  while (DatabaseState* database = take_notes_of_ended(&notes) ? this_database() : nullptr) {
    lower_low_water_marks_to(notes.ready);
    lower_fronts_to(notes.parked);
    publish_notes(database, notes);
  }
}

// Runs before the snapshot: a job that lowers a low-water mark later may be invisible to this
// claim.
void remember_low_water(Claim* claim) {
  claim->low_water = low_water_buckets();
  for (int bit = 0; claim->low_water && bit < kTaskBits; bit++)
    if ((claim->worker.task_bits >> bit) & 1)
      claim->low_water_generation[bit] = claim->low_water[bit].read_generation();
}

// A hash of the claim's terms: its tasks and its forbidden flags.
uint64 wake_group_of(const Claim* claim) {
  uint64 wake_group = claim->worker.wake_group;
  for (int i = 0; i < claim->forbidden_count; i++)
    wake_group += ~fnv1a(DatumGetTextPP(claim->forbidden_flags[i]));
  return wake_group;
}

bool is_kept_waiting(const Claim* claim) { return claim->is_job_held && claim->claimed == 0; }

void run_claim(Claim* claim, FunctionCallInfo fcinfo) {
  admit_worker(&claim->worker, PG_GETARG_INT64(0));
  choose_tasks(&claim->worker, PG_ARGISNULL(2) ? nullptr : PG_GETARG_ARRAYTYPE_P(2));
  // A draining worker may wait, but must not take a wake-up from a worker that can claim.
  claim->continues_round = sample_generations(claim->worker.worker_id,
                                              claim->worker.draining ? 0 : claim->worker.task_bits,
                                              wake_group_of(claim), claim->start_jobs);
  if (claim->worker.draining) return beat_for_claim(claim->worker);
  claim->row_context =
      AllocSetContextCreate(CurrentMemoryContext, "pulse claim row", ALLOCSET_SMALL_SIZES);
  publish_prepared();
  Promotion left = promote_for(claim);
  claim->stamp.worker_id = claim->worker.worker_id;
  claim->stamp.now = wall_now();
  claim->stays_in_place = claims_stay_in_place(claim->max_jobs);
  if (claim->stays_in_place) {
    index_running_now_and_then(claim->worker.worker_id);
    claim->in_place_ids = static_cast<int64*>(palloc(sizeof(int64) * claim->max_jobs));
  }
  remember_low_water(claim);
  open_job_table(&claim->table);
  claim->index = index_open(catalog()->job_claim_idx, AccessShareLock);
  hand_out(claim);
  open_placed(claim);
  store_readings(claim->levels);
  index_close(claim->index, AccessShareLock);
  close_job_table(&claim->table);
  add_claim_batches(claim->worker.worker_id, claim->stamp.token, claim->in_place_ids,
                    claim->in_place_count);
  WorkLeft kind = left.more                                      ? WorkLeft::kNow
                  : left.busy || is_kept_waiting(claim)          ? WorkLeft::kBusy
                  : claim->poison_suspect_waits || claim->closed ? WorkLeft::kSoon
                                                                 : WorkLeft::kNone;
  note_work_left(left_of_round(claim, kind));
  beat_for_claim(claim->worker);
  offer_sweep();
}

}  // namespace

const TaskSettings& settings_of(Claim* claim, TaskCursor* cursor) {
  if (!cursor->settings_read) {
    cursor->settings = task_settings(cursor->identifier, claim->table.snapshot);
    cursor->settings_read = true;
  }
  return cursor->settings;
}

void prepare_to_take(Claim* claim, TaskCursor* cursor) {
  settings_of(claim, cursor);
  if (claim->stamp.token != 0) return;
  claim->stamp.token = next_token();
  claim->stamp.live_now = live_now_us();
}

bool take_row(Claim* claim, TaskCursor* cursor, const ItemPointerData& tid) {
  if (!try_lock_row(&claim->table, tid)) return false;
  prepare_to_take(claim, cursor);
  TupleTableSlot* row = claim->table.locked;
  int64 id = DatumGetInt64(value_of(row, kJobId));
  bool is_in_place = may_stay_in_place(claim, row);
  claim_locked_row(&claim->table, claim->stamp, is_in_place, claim->levels);
  return_row(claim, claim->table.changed, settings_of(claim, cursor));
  if (is_in_place) claim->in_place_ids[claim->in_place_count++] = id;
  claim->claimed++;
  return true;
}

Fit fit_of_row(Claim* claim, TaskCursor* cursor, int in_view) {
  TupleTableSlot* row = cursor->scan.row;
  if (is_locked_by_other(row, &claim->blocking_xid) || has_forbidden_flag(claim, row))
    return Fit::kNot;
  if (is_poison_suspect(claim, cursor)) return Fit::kIsolated;
  bool can_start = claim->claimed + in_view < claim->start_jobs;
  return can_start || may_be_prefetched(row) ? Fit::kGood : Fit::kMustStart;
}

}  // namespace pulse

// pulse_internal.publish_prepared()
PULSE_FUNCTION(pulse_publish_prepared) {
  pulse::publish_prepared();
  PG_RETURN_VOID();
}

PULSE_FUNCTION(pulse_claim) {
  pulse::Claim claim = {};
  pulse::check_admission();
  pulse::read_arguments(&claim, fcinfo);
  pulse::begin_result_rows(fcinfo);
  claim.results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  pulse::run_claim(&claim, fcinfo);
  return static_cast<Datum>(0);
}

// pulse_internal.require_claims(): raises PU008 while claims are off, and in a copy before its
// adoption.
PULSE_FUNCTION(pulse_require_claims) {
  pulse::require_claims_on();
  PG_RETURN_BOOL(true);
}
