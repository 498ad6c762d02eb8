// pulse.complete and complete_many: rows are deleted straight from the heap; what must be kept, or
// was ended before, goes through the SQL functions of sql/finish.sql.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/index_lookup.hpp"
#include "access/saved_plan.hpp"
#include "access/slow_path.hpp"
#include "claim/in_place_claim.hpp"
#include "job/job_table.hpp"
#include "job/task_row.hpp"
#include "server/argument_checks.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"
#include "server/settings.hpp"
#include "server/shared_memory.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

struct CompletionRequest {
  int64 id;
  int64 token;
  Datum result;
  bool result_null;
  int position;
  const char* outcome;
};

struct Completion {
  JobTable table;
  IndexLookup ids;
  bool by_sql;        // some jobs are kept, or somebody's triggers look on
  InPlaceEnd* fresh;  // those that were completed in place
  int in_place_count;
};

int by_id(const void* a, const void* b) {
  int64 left = static_cast<const CompletionRequest*>(a)->id;
  int64 right = static_cast<const CompletionRequest*>(b)->id;
  return left < right ? -1 : left > right;
}

// Whether any task has a retention of its own; then each completed job is looked at by SQL.
bool some_task_keeps(Snapshot snapshot) {
  Relation table = table_open(catalog()->task, AccessShareLock);
  TupleTableSlot* row = table_slot_create(table, nullptr);
  TableScanDesc scan = table_beginscan(table, snapshot, 0, nullptr);
  bool found = false;
  while (!found && table_scan_getnextslot(scan, ForwardScanDirection, row)) {
    bool isnull;
    slot_getattr(row, kTaskKeepCompleted, &isnull);
    found = !isnull;
  }
  table_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  table_close(table, AccessShareLock);
  return found;
}

// One job through SQL: kept by retention, or a repeat of what this token completed before.
const char* complete_by_sql(const CompletionRequest& asked) {
  static SavedPlan query = {
      "SELECT pulse._complete_one($1, $2, $3)", 3, {INT8OID, INT8OID, JSONOID}, nullptr};
  Datum values[] = {Int64GetDatum(asked.id), Int64GetDatum(asked.token), asked.result};
  char nulls[] = {' ', ' ', asked.result_null ? 'n' : ' '};
  const char* known = "stale";
  run_saved_plan(&query, values, nulls, [&known](HeapTuple* rows, uint64) {
    const char* outcome = SPI_getvalue(rows[0], SPI_tuptable->tupdesc, 1);
    if (strcmp(outcome, "accepted") == 0) known = "accepted";
    if (strcmp(outcome, "busy") == 0) known = "busy";
  });
  return known;
}

bool is_current(TupleTableSlot* row, int64 token) {
  bool isnull;
  Datum stored = slot_getattr(row, kJobToken, &isnull);
  if (isnull || DatumGetInt64(stored) != token) return false;
  return DatumGetObjectId(slot_getattr(row, kJobState, &isnull)) == catalog()->state_running;
}

void note_in_place_end(Completion* completion, TupleTableSlot* row,
                       const CompletionRequest& asked) {
  bool isnull;
  if (!catalog()->has_index_lanes || !DatumGetBool(slot_getattr(row, kJobInPlace, &isnull))) return;
  int64 worker_id = DatumGetInt64(slot_getattr(row, kJobWorkerId, &isnull));
  completion->fresh[completion->in_place_count++] = {worker_id, asked.token, asked.id};
}

// The row at hand. False when others hold it or have changed it meanwhile.
bool delete_row(Completion* completion, const CompletionRequest& asked) {
  TupleTableSlot* row = completion->ids.row;
  bool no_queue;
  Datum queue = slot_getattr(row, kJobQueueName, &no_queue);
  int slot = no_queue ? 0 : queue_slot(DatumGetTextPP(queue));
  TM_Result result = try_delete_row(&completion->table, row);
  // A lock of this very transaction also reads as "being modified": taking it again tells whose it
  // is.
  if (result == TM_BeingModified && try_lock_row(&completion->table, row->tts_tid))
    result = try_delete_row(&completion->table, row, true);
  if (result != TM_Ok) return false;
  note_in_place_end(completion, row, asked);
  if (!no_queue) note_queue_slot(slot);
  return true;
}

// Whether the claim is current and its job needs no more than a delete.
bool is_plain_end(Completion* completion, const CompletionRequest& asked) {
  return find_id(&completion->ids, asked.id) && is_current(completion->ids.row, asked.token) &&
         !completion->by_sql;
}

const char* complete_row(Completion* completion, const CompletionRequest& asked) {
  if (!is_plain_end(completion, asked)) return complete_by_sql(asked);
  // Who is told busy asks again, and hears how that ended.
  return delete_row(completion, asked) ? "accepted" : "busy";
}

void open_completion(Completion* completion, int count) {
  *completion = {};
  JobTable* table = &completion->table;
  open_job_table(table);
  open_index_lookup(&completion->ids, table->relation, catalog()->job_key, table->snapshot);
  completion->by_sql = settings.keep_completed_s != 0 || table->relation->trigdesc ||
                       some_task_keeps(table->snapshot);
  completion->fresh = static_cast<InPlaceEnd*>(palloc(sizeof(InPlaceEnd) * Max(count, 1)));
}

void close_completion(Completion* completion) {
  close_index_lookup(&completion->ids);
  close_job_table(&completion->table);
}

void complete_all(CompletionRequest* asked, int count) {
  Completion completion;
  open_completion(&completion, count);
  // In id order, so that two callers with the same jobs never wait for one another.
  qsort(asked, count, sizeof(CompletionRequest), by_id);
  if (count > 0) expect_ids(&completion.ids, asked[0].id, asked[count - 1].id, count);
  for (int i = 0; i < count; i++) {
    CHECK_FOR_INTERRUPTS();
    bool repeated = i > 0 && asked[i].id == asked[i - 1].id && asked[i].token == asked[i - 1].token;
    asked[i].outcome = repeated ? asked[i - 1].outcome : complete_row(&completion, asked[i]);
  }
  close_completion(&completion);
  remove_from_batches(completion.fresh, completion.in_place_count);
}

// False when nothing was done, because it takes more, or because somebody has to be waited for.
// What was claimed in place stays listed until its worker's next beat: to strike it off would
// rewrite the list.
bool complete_at_once(int64 id, int64 token) {
  // Such a transaction must not see what came after its snapshot.
  if (IsolationUsesXactSnapshot()) return false;
  CompletionRequest asked = {id, token, static_cast<Datum>(0), true, 0, nullptr};
  Completion completion;
  open_completion(&completion, 1);
  bool is_done = is_plain_end(&completion, asked) && delete_row(&completion, asked);
  close_completion(&completion);
  if (is_done) CommandCounterIncrement();
  return is_done;
}

void int8_elements(ArrayType* array, const char* what, Datum** elements, int* count) {
  if (ARR_NDIM(array) > 1 || array_contains_nulls(array))
    ereport(ERROR, (errcode(kOutOfRange), errmsg("%s must be a flat array without nulls", what),
                    errhint("Give the id and the token of each claimed job.")));
  deconstruct_array(array, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, elements, nullptr, count);
}

CompletionRequest* read_asked(FunctionCallInfo fcinfo, int* count) {
  Datum *ids, *tokens, *results = nullptr;
  bool* result_nulls = nullptr;
  int token_count, result_count;
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
    ereport(ERROR, (errcode(kOutOfRange), errmsg("job_ids and tokens must not be null"),
                    errhint("Give the id and the token of each claimed job.")));
  int8_elements(PG_GETARG_ARRAYTYPE_P(0), "job_ids", &ids, count);
  int8_elements(PG_GETARG_ARRAYTYPE_P(1), "tokens", &tokens, &token_count);
  result_count = *count;
  if (!PG_ARGISNULL(2))
    deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), JSONOID, -1, false, TYPALIGN_INT, &results,
                      &result_nulls, &result_count);
  if (token_count != *count || result_count != *count)
    ereport(ERROR, (errcode(kOutOfRange), errmsg("the arrays have different lengths"),
                    errdetail("There are %d job_ids, %d tokens and %d results.", *count,
                              token_count, result_count),
                    errhint("Give one element per job in each.")));
  auto* asked =
      static_cast<CompletionRequest*>(palloc0(sizeof(CompletionRequest) * Max(*count, 1)));
  for (int i = 0; i < *count; i++) {
    bool no_result = !results || result_nulls[i];
    if (!no_result) check_document("result", results[i]);
    asked[i] = {DatumGetInt64(ids[i]),
                DatumGetInt64(tokens[i]),
                no_result ? static_cast<Datum>(0) : results[i],
                no_result,
                i,
                nullptr};
  }
  return asked;
}

}  // namespace
}  // namespace pulse

// pulse.complete(job_id, token, result): see sql/finish.sql for the contract of both.
PULSE_FUNCTION(pulse_complete) {
  PreventCommandIfReadOnly("complete");
  PreventCommandDuringRecovery("complete");
  (void)pulse::this_database();
  if (!PG_ARGISNULL(2)) pulse::check_document("result", PG_GETARG_DATUM(2));
  bool names_claim = !PG_ARGISNULL(0) && !PG_ARGISNULL(1);
  if (!names_claim || !pulse::complete_at_once(PG_GETARG_INT64(0), PG_GETARG_INT64(1)))
    (void)pulse::call_in_full("_complete_in_full", fcinfo);
  PG_RETURN_VOID();
}

// pulse.complete_many(job_ids, tokens, results).
PULSE_FUNCTION(pulse_complete_many) {
  PreventCommandIfReadOnly("complete_many");
  PreventCommandDuringRecovery("complete_many");
  (void)pulse::this_database();
  int count;
  pulse::CompletionRequest* asked = pulse::read_asked(fcinfo, &count);
  pulse::begin_result_rows(fcinfo);
  auto* results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  pulse::complete_all(asked, count);
  for (int i = 0; i < count; i++) {
    Datum values[] = {Int64GetDatum(asked[i].id), CStringGetTextDatum(asked[i].outcome)};
    bool nulls[] = {false, false};
    tuplestore_putvalues(results->setResult, results->setDesc, values, nulls);
  }
  return static_cast<Datum>(0);
}
