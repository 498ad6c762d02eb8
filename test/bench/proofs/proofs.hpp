// The proofs. Each wants a server of its own in which the extension was just created, and says in
// its report what holds.
#pragma once

#include <string>
#include <vector>

#include "report.hpp"
#include "session.hpp"

namespace bench {

// 100,000 ready jobs, 8 claimers of 100 at once: each job is claimed exactly once.
void prove_claimed_once(Report* report);
// Queues under everything that can end a claim: concurrency is kept, and nothing is stranded.
void prove_queues(Report* report);
// What one claim writes when 20,000 queues are not empty.
void prove_claim_wal(Report* report);
// What an empty claim reads, whatever the table holds that this worker cannot have.
void prove_empty_claims(Report* report);
// How soon a parked wait returns after a job's commit, and that it holds back no vacuum.
void prove_wait_latency(Report* report);
// The whole server killed under load: no acknowledged add is lost, no accepted completion undone.
// restart_command starts the server again.
void prove_server_kills(Report* report, const std::vector<std::string>& restart_command);
// 100,000 running jobs of 200 dead workers recovered in bounded transactions, while others claim.
void prove_sweep(Report* report);
// pg_cron alone calling tick() each minute, nothing of ours preloaded: ten workers die.
void prove_cron(Report* report);
// What polling the views costs with a million ready and two million finished jobs.
void prove_views(Report* report);

std::int64_t register_worker(Session* session, const std::string& name, const std::string& task);
// One call of add_jobs. {i} in a column stands for the number of the job.
void add_many(Session* session, const std::string& columns, int count);
// Adds a line for the promises that verify() finds broken.
void check_verify(Session* session, Report* report);

}  // namespace bench
