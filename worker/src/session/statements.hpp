// Statements: every SQL text that the worker sends, but for the texts that set up a session
// (base/postgres/session_settings.hpp). Each statement calls one function of the extension, with
// parameters; names are qualified, so no search_path changes their meaning. Intervals come back as
// numbers of seconds and arrays of text as JSON, so nothing depends on the session's styles.
#pragma once

#include "base/postgres/statement.hpp"

namespace pulse::statements {

// Which database this is, whatever names lead there.
inline constexpr Statement kDatabaseIdentity{
    "database_identity",
    "SELECT s.system_identifier::pg_catalog.text || '/' || d.oid::pg_catalog.text AS identity"
    " FROM pg_catalog.pg_control_system() AS s, pg_catalog.pg_database AS d"
    " WHERE d.datname = pg_catalog.current_database()"};

// Registration.
inline constexpr Statement kRegisterWorker{
    "register_worker",
    "SELECT w.id, EXTRACT(epoch FROM w.heartbeat_interval) AS heartbeat_interval,"
    " EXTRACT(epoch FROM w.sweep_threshold) AS sweep_threshold,"
    " EXTRACT(epoch FROM pg_catalog.current_setting('pulse.sweep_interval')"
    "::pg_catalog.interval) AS sweep_interval,"
    " EXTRACT(epoch FROM pg_catalog.current_setting('pulse.poll_interval')"
    "::pg_catalog.interval) AS poll_interval"
    " FROM pulse.register_worker($1::pg_catalog.text, $2::pg_catalog.text[],"
    " $3::pg_catalog.json, $4::pg_catalog.interval) AS w"};
inline constexpr Statement kAttachWorker{"attach_worker", "SELECT pulse.attach_worker($1::bigint)"};
// Since 0.2.0.
inline constexpr Statement kServeTasks{
    "serve_tasks",
    "SELECT pulse.serve_tasks($1::bigint, $2::pg_catalog.text[], $3::pg_catalog.json)"};
inline constexpr Statement kDeregisterWorker{"deregister_worker",
                                             "SELECT pulse.deregister_worker($1::bigint)"};

// Claiming. The columns of claimed_job are the same for claim and held. But no task gets the jobs
// that held returns, and a document may be why the reply of a claim was lost: held reads no
// documents. 0.1.0 lacks scheduled_for, parents and traceparent: there the names are the columns of
// `absent`.
#define PULSE_DOCUMENTS \
  "j.payload, j.checkpoint, (SELECT parents FROM (SELECT j.*) AS own) AS parents"
// The bytes of both documents in place of the payload.
#define PULSE_NO_DOCUMENTS                                                             \
  "COALESCE(pg_catalog.octet_length(j.payload::pg_catalog.text), 0)"                   \
  " + COALESCE(pg_catalog.octet_length(j.checkpoint::pg_catalog.text), 0) AS payload," \
  " NULL::pg_catalog.json AS checkpoint, NULL::pg_catalog.json AS parents"
#define PULSE_CLAIMED_JOB_COLUMNS(documents)                                                   \
  "SELECT j.id, j.token, j.identifier, " documents                                             \
  ", j.queue_name, j.priority,"                                                                \
  " pg_catalog.to_json(j.run_at) AS run_at, j.attempts, j.max_attempts, j.crashes, j.job_key," \
  " pg_catalog.to_json(j.flags) AS flags, j.last_error, j.recovered,"                          \
  " EXTRACT(epoch FROM j.timeout) AS timeout,"                                                 \
  " EXTRACT(epoch FROM j.stall_timeout) AS stall_timeout, j.on_unreachable,"                   \
  " j.handler IS NOT NULL AS has_handler,"                                                     \
  " pg_catalog.to_json(j.created_at) AS created_at,"                                           \
  " (SELECT pg_catalog.to_json(scheduled_for) FROM (SELECT j.*) AS own) AS scheduled_for,"     \
  " (SELECT traceparent FROM (SELECT j.*) AS own) AS traceparent "
#define PULSE_ABSENT_COLUMNS                                                \
  " AS j CROSS JOIN (SELECT NULL::pg_catalog.timestamptz AS scheduled_for," \
  " NULL::pg_catalog.json AS parents, NULL::pg_catalog.text AS traceparent) AS absent"
#define PULSE_CLAIM                                                         \
  "FROM pulse.claim($1::bigint, $2::integer, $3::pg_catalog.text[], NULL, " \
  "$4::integer)" PULSE_ABSENT_COLUMNS
inline constexpr Statement kClaim{"claim", PULSE_CLAIMED_JOB_COLUMNS(PULSE_DOCUMENTS) PULSE_CLAIM,
                                  true};
inline constexpr Statement kClaimBare{"claim_bare",
                                      PULSE_CLAIMED_JOB_COLUMNS(PULSE_NO_DOCUMENTS) PULSE_CLAIM};
inline constexpr Statement kHeld{
    "held", PULSE_CLAIMED_JOB_COLUMNS(
                PULSE_NO_DOCUMENTS) "FROM pulse.held($1::bigint)" PULSE_ABSENT_COLUMNS};
#undef PULSE_CLAIMED_JOB_COLUMNS
#undef PULSE_CLAIM
#undef PULSE_NO_DOCUMENTS
#undef PULSE_DOCUMENTS
#undef PULSE_ABSENT_COLUMNS
inline constexpr Statement kWaitForJob{
    "wait_for_job", "CALL pulse.wait_for_job($1::bigint, $2::pg_catalog.interval)"};

// Tasks that are functions of the database. perform_job is not prepared: the function called may
// drop all prepared statements. perform_job takes back the state that the function leaves in the
// session.
inline constexpr Statement kHandlerTasks{
    "handler_tasks",
    "SELECT pg_catalog.to_json(h.tasks) AS tasks FROM pulse.handler_tasks() AS h(tasks)"};
inline constexpr Statement kTaskLimits{
    "task_limits",
    "SELECT l.identifier, EXTRACT(epoch FROM l.timeout) AS timeout,"
    " EXTRACT(epoch FROM l.stall_timeout) AS stall_timeout, l.on_unreachable"
    " FROM pulse.task_limits($1::bigint, $2::pg_catalog.text[]) AS l"};
// The name of the session belongs to the transaction; OFFSET 0 keeps the name from being set after
// the call.
inline constexpr Statement kPerformJob{
    "perform_job",
    "SELECT pulse.perform_job($1::bigint, $2::bigint) FROM (SELECT pg_catalog.set_config("
    "'application_name', $3::pg_catalog.text, true) OFFSET 0) AS named"};

// Beating. A function in FROM would cost a store of rows each time; OFFSET 0 keeps the planner from
// calling it once for each column.
inline constexpr Statement kHeartbeat{"heartbeat",
                                      "SELECT (b.beat).status, (b.beat).revoked,"
                                      " (b.beat).cancelled,"
                                      // NULL of an older library.
                                      " pg_catalog.current_setting('pulse.background_sweeps', true)"
                                      " AS background_sweeps"
                                      " FROM (SELECT pulse.heartbeat($1::bigint, $2::bigint[])"
                                      " AS beat OFFSET 0) AS b",
                                      true};

// Finishing.
inline constexpr Statement kCompleteMany{
    "complete_many",
    "SELECT o.id, o.outcome"
    " FROM pulse.complete_many($1::bigint[], $2::bigint[], $3::pg_catalog.json[]) AS o",
    true};
inline constexpr Statement kFailMany{
    "fail_many",
    "SELECT o.id, o.outcome FROM pulse.fail_many($1::bigint[], $2::bigint[],"
    " $3::pg_catalog.text[], $4::boolean[], $5::pg_catalog.interval[],"
    " $6::pg_catalog.json[]) AS o",
    true};
inline constexpr Statement kFailLate{
    "fail_late",
    "SELECT o.id, o.outcome FROM pulse.fail_late($1::bigint[], $2::bigint[],"
    " $3::pg_catalog.text[], $4::pg_catalog.text[], $5::pg_catalog.json[]) AS o"};
// Raises PU001 where the other functions answer "stale".
inline constexpr Statement kSnooze{
    "snooze",
    "SELECT $1::bigint AS id, 'accepted'::pg_catalog.text AS outcome,"
    " pulse.snooze($1::bigint, $2::bigint, $3::pg_catalog.interval, $4::pg_catalog.json)"};
inline constexpr Statement kRelease{
    "release", "SELECT o.id, o.outcome FROM pulse.release($1::bigint[], $2::bigint[]) AS o"};
inline constexpr Statement kProgress{
    "progress",
    "SELECT pulse.progress($1::bigint, $2::bigint, $3::pg_catalog.text, $4::double precision,"
    " $5::pg_catalog.json, $6::pg_catalog.text)",
    true};
inline constexpr Statement kGetJob{"get_job", "SELECT g.state FROM pulse.get_job($1::bigint) AS g"};

// Finding lost workers.
inline constexpr Statement kCheckHost{
    "check_host", "SELECT c.id, c.pid, c.process_start FROM pulse.check_host($1::bigint) AS c"};
inline constexpr Statement kSweep{
    "sweep",
    "SELECT s.workers_lost, s.jobs_requeued, s.jobs_failed, s.jobs_quarantined, s.jobs_timed_out,"
    " s.jobs_stalled, s.jobs_skipped_locked, EXTRACT(epoch FROM s.skipped_time) AS skipped_time"
    // NULL of an older library.
    " FROM pulse.sweep(COALESCE(pg_catalog.current_setting('pulse.sweep_jobs', true)"
    "::pg_catalog.int4, 1000)) AS s"};
inline constexpr Statement kLoadCrontab{
    "load_crontab",
    "SELECT l.name, l.change FROM pulse.load_crontab($1::pg_catalog.text, $2::pg_catalog.json) AS "
    "l"};
inline constexpr Statement kDeclareLost{
    "declare_lost",
    "SELECT d.jobs FROM pulse.declare_lost($1::bigint, $2::pg_catalog.text) AS d(jobs)"};

}  // namespace pulse::statements
