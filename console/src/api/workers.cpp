// Workers without a session of their own: registering, claiming, beating.
#include "api/body.hpp"
#include "api/routes.hpp"
#include "api/sweep_notice.hpp"
#include "base/http/status.hpp"
#include "base/postgres/sqlstate.hpp"
#include "serve/problem.hpp"

namespace pulse::console {
namespace {

using WaitClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kMaxWait(30);
// pulse serve notices after this time at the latest that a client has gone, and then claims no job
// for the client.
constexpr std::chrono::seconds kWaitStep(2);

// A worker without an interval of its own has the interval of the database. No worker of the API
// lives by a session.
constexpr const char* kRegister =
    "SELECT json_build_object('id', w.id::text, 'name', w.name, 'tasks', w.tasks,"
    " 'heartbeat_interval_seconds', extract(epoch FROM w.heartbeat_interval),"
    " 'sweep_threshold_seconds', extract(epoch FROM w.sweep_threshold)) AS document"
    " FROM json_to_record($1::json) AS d (name text, tasks text[],"
    " heartbeat_interval interval), pulse.register_worker(d.name, d.tasks, $2::json,"
    " d.heartbeat_interval) AS w";

constexpr const char* kIsBySession = "SELECT $1::interval = interval '0' AS is_by_session";

constexpr const char* kBeat =
    "SELECT status, json_build_object('status', status, 'revoked', revoked::text[],"
    " 'cancelled', cancelled::text[]) AS document FROM pulse.heartbeat($1::bigint, $2::bigint[])";

constexpr const char* kClaim =
    "SELECT count(*) AS jobs, json_build_object('jobs', coalesce(json_agg(json_build_object("
    "'id', c.id::text, 'token', c.token::text, 'identifier', c.identifier, 'payload', c.payload,"
    " 'queue_name', c.queue_name, 'priority', c.priority, 'run_at', c.run_at,"
    " 'attempts', c.attempts, 'max_attempts', c.max_attempts, 'crashes', c.crashes,"
    " 'job_key', c.job_key, 'flags', c.flags, 'checkpoint', c.checkpoint,"
    " 'last_error', c.last_error, 'recovered', c.recovered,"
    " 'timeout_seconds', extract(epoch FROM c.timeout),"
    " 'stall_timeout_seconds', extract(epoch FROM c.stall_timeout),"
    " 'created_at', c.created_at, 'scheduled_for', c.scheduled_for, 'parents', c.parents,"
    " 'traceparent', c.traceparent)),"
    " '[]')) AS document FROM pulse.claim($1::bigint, coalesce($2::int, 1), $3::text[],"
    " $4::text[]) AS c";

constexpr const char* kWait = "CALL pulse.wait_for_job($1::bigint, $2::interval)";

constexpr const char* kDeregister = "SELECT FROM pulse.deregister_worker($1::bigint)";

Response register_one(const Request& request) {
  const Body body = read_body(request, {{"name", Is::text, true},
                                        {"tasks", Is::texts},
                                        {"info", Is::document},
                                        {"heartbeat_interval", Is::text}});
  if (const auto every = body.parameter("heartbeat_interval")) {
    if (request.database().query(kIsBySession, {every})[0].text("is_by_session") == "t") {
      refuse(http_status::kUnprocessableContent, "over HTTP a worker has no session to live by",
             "Give a heartbeat_interval above 0, and send heartbeats.");
    }
  }
  return document_in(request.database().query(kRegister, {body.text(), body.document("info")}),
                     http_status::kCreated);
}

Response deregister(const Request& request) {
  const std::string id = request.parameter("id");
  try {
    request.database().query(kDeregister, {id});
  } catch (const Refused& refused) {
    if (refused.error.sqlstate != sqlstate::kWorkerIsLost) throw;
    throw Failed({http_status::kNotFound, title_of(http_status::kNotFound), refused.error.message,
                  refused.error.sqlstate, refused.error.hint});
  }
  return {.status = http_status::kNoContent, .type = ""};
}

Response beat(const Request& request) {
  const Body body = read_body(request, {{"worker_id", Is::id, true}, {"job_ids", Is::ids}});
  const SweepNotice notice(request.database());
  const QueryResult beaten =
      request.database().query(kBeat, {body.parameter("worker_id"), body.parameter("job_ids")});
  notice.sweep_before_answer();
  if (beaten[0].text("status") != "lost") return document_in(beaten);
  throw Failed({http_status::kGone, "Worker lost",
                "worker " + *body.parameter("worker_id") + " is lost", sqlstate::kWorkerIsLost,
                "Register again, and use the new id. Its jobs go to other workers."});
}

std::chrono::milliseconds wait_of(const Body& body) {
  const auto found = body.fields.find("wait_seconds");
  if (found == body.fields.end() || found->is_null()) return std::chrono::milliseconds(0);
  const double seconds = found->get<double>();
  if (!(seconds >= 0 && seconds <= static_cast<double>(kMaxWait.count()))) {
    refuse(http_status::kUnprocessableContent, "'wait_seconds' is out of range",
           "It must be between 0 and 30.");
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// The wait is in the session that claims, where wake-ups are exact. A client that has gone gets no
// job; a claim would count as a heartbeat of the client's worker, too.
Response claim(const Request& request) {
  const Body body = read_body(request, {{"worker_id", Is::id, true},
                                        {"max_jobs", Is::integer},
                                        {"tasks", Is::texts},
                                        {"forbidden_flags", Is::texts},
                                        {"wait_seconds", Is::number}});
  const auto end = WaitClock::now() + wait_of(body);
  const Params params{body.parameter("worker_id"), body.parameter("max_jobs"),
                      body.parameter("tasks"), body.parameter("forbidden_flags")};
  const SweepNotice notice(request.database());
  for (;;) {
    const QueryResult claimed = request.database().query(kClaim, params);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - WaitClock::now());
    if (claimed[0].integer("jobs") > 0 || left.count() <= 0 || !request.may_wait) {
      notice.sweep_before_answer();
      Response response = document_in(claimed);
      if (left.count() > 0 && !request.may_wait) response.headers.emplace_back("Retry-After", "1");
      return response;
    }
    notice.sweep_if_due();
    request.database().query(kWait,
                             {params[0], interval_param(std::min<Duration>(left, kWaitStep))});
    if (request.is_client_gone()) return document_in(claimed);
  }
}

}  // namespace

void add_worker_routes(Router& router) {
  router.add("POST", "/v1/workers", Need::act, register_one);
  router.add("DELETE", "/v1/workers/{id}", Need::act, deregister);
  router.add("POST", "/v1/heartbeats", Need::act, beat);
  router.add("POST", "/v1/claims", Need::act, claim, Pool::waiting);
}

}  // namespace pulse::console
