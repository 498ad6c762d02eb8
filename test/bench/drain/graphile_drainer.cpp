#include "graphile_drainer.hpp"

namespace bench {
namespace {

// Its queues are looked for up front; of a batch, only the first job of each queue is kept.
const std::string kQueueIsFree =
    " and (jobs.job_queue_id is null or jobs.job_queue_id in (select id"
    " from graphile_worker._private_job_queues as job_queues where job_queues.is_available = true"
    " for update skip locked))";
const std::string kFirstOfQueue =
    ", j as (select distinct on (job_queue_id, case when job_queue_id is null then id end)"
    " job_queue_id, priority, run_at, id from j_raw"
    " order by job_queue_id, case when job_queue_id is null then id end, priority asc, run_at asc)";
const std::string kLockQueues =
    ", q as (update graphile_worker._private_job_queues as job_queues"
    " set locked_by = $1::text, locked_at = now() from j where job_queues.id = j.job_queue_id)";

std::string claim_of(int batch) {
  std::string name = batch > 1 ? "j_raw" : "j";
  return "with " + name +
         " as (select jobs.job_queue_id, jobs.priority, jobs.run_at, jobs.id"
         " from graphile_worker._private_jobs as jobs where jobs.is_available = true"
         " and run_at <= now() and task_id = any($2::int[])" +
         kQueueIsFree + " order by priority asc, run_at asc limit " + std::to_string(batch) +
         " for update skip locked)" + (batch > 1 ? kFirstOfQueue : "") + kLockQueues +
         " update graphile_worker._private_jobs as jobs set attempts = jobs.attempts + 1,"
         " locked_by = $1::text, locked_at = now() from j where jobs.id = j.id returning *";
}

std::string complete_of(int batch) {
  if (batch == 1) return "delete from graphile_worker._private_jobs as jobs where id = $1::bigint";
  return "delete from graphile_worker._private_jobs as jobs using unnest($1::bigint[]) n(n)"
         " where id = n";
}

}  // namespace

GraphileDrainer::GraphileDrainer(const std::string& name, const DrainOptions& options)
    : session_(name),
      pool_(name),
      claim_(claim_of(options.batch)),
      complete_(complete_of(options.batch)) {
  task_ids_ = session_.text(
      "SELECT array_agg(id)::text FROM graphile_worker._private_tasks WHERE identifier = $1",
      {options.task});
  session_.prepare(claim_);
  session_.prepare(complete_);
}

Drained GraphileDrainer::run() {
  session_.start_pipeline();
  Ids held;
  do {
    held = next_claim(held);
  } while (!held.empty());
  session_.stop_pipeline();
  return total_;
}

Ids GraphileDrainer::next_claim(const Ids& done) {
  bool one = complete_.ends_with("$1::bigint");
  if (!done.empty()) session_.send(complete_, {one ? Value(done[0]) : Value(done)});
  session_.send(claim_, {pool_, task_ids_});
  session_.flush();
  if (!done.empty()) session_.next_rows();
  Rows rows = session_.next_rows();
  session_.end_of_flush();
  total_.jobs += static_cast<std::int64_t>(done.size());
  total_.claims++;
  // Its rows have columns of types that are read here by position: id first, payload third.
  Ids ids;
  ids.reserve(rows.count());
  for (int i = 0; i < rows.count(); i++) {
    ids.push_back(rows.number(i, 0));
    total_.payload_bytes += static_cast<std::int64_t>(rows.text(i, 2).size());
  }
  return ids;
}

}  // namespace bench
