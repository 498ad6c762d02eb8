// Jobs: adding, reading, cancelling, and a worker's reports about a job that the worker has
// claimed.
#include <iterator>

#include "admission/digest.hpp"
#include "api/body.hpp"
#include "api/routes.hpp"
#include "base/http/status.hpp"
#include "base/postgres/array_literal.hpp"
#include "base/postgres/sqlstate.hpp"
#include "job/private_fields.hpp"
#include "serve/problem.hpp"

namespace pulse::console {
namespace {

// A document goes to the server apart from the other fields, as the client wrote it: to take a
// document out of a larger one, the server would read each string there. The call names `trace`, so
// the server makes the setting before the call.
constexpr const char* kAddFrom =
    "SELECT a.outcome, a.id, json_build_object('id', a.id::text, 'state', a.state, 'run_at',"
    " a.run_at) AS document FROM json_to_record($1::json) AS d (identifier text, queue_name text,"
    " run_at timestamptz, max_attempts int, job_key text, priority int, flags text[], job_key_mode "
    "text, unique_for interval, unique_key text, unique_states text[]),"
    " (SELECT set_config('pulse.traceparent', coalesce($2, ''), true) OFFSET 0) AS trace (parent),"
    " LATERAL (SELECT ";
constexpr const char* kAlways =
    "'added' AS outcome, j.id, j.state::text, j.run_at FROM pulse.add_job(";
constexpr const char* kForRequest =
    "j.outcome, j.job_id, j.job_state, j.job_run_at FROM pulse.add_job_for_request($4, $5, $6, ";
constexpr const char* kOnceAs =
    "CASE WHEN j.is_new THEN 'added' ELSE 'known' END, j.id, j.state,"
    " NULL::timestamptz FROM pulse.add_job_once(d.unique_for, d.unique_key,"
    " CASE WHEN trace.parent IS NOT NULL THEN d.identifier END, $3::json, d.queue_name, d.run_at,"
    " d.max_attempts, d.priority, d.flags, d.unique_states) AS j)"
    " AS a (outcome, id, state, run_at)";
constexpr const char* kAddTo =
    "CASE WHEN trace.parent IS NOT NULL THEN d.identifier END, $3::json, d.queue_name, d.run_at,"
    " d.max_attempts, d.job_key, d.priority, d.flags, coalesce(d.job_key_mode, 'replace')) AS j)"
    " AS a (outcome, id, state, run_at)";

// Numbers of 64 bits become strings; the answer leaves out the documents that a client without a
// token may not see.
constexpr const char* kShown =
    "SELECT json_build_object('state', g.state, 'job', (SELECT json_object_agg(e.key,"
    " CASE WHEN e.key ~ '(^id|_id|_of|_on|^cancelled_by|^token)$' AND json_typeof(e.value) = "
    "'number'"
    " THEN to_json(e.value #>> '{}') ELSE CASE e.key WHEN 'payload' THEN g.payload"
    " WHEN 'checkpoint' THEN g.checkpoint WHEN 'result' THEN g.result"
    " WHEN 'parents' THEN g.parents ELSE e.value END END)"
    " FROM json_each(g.job) AS e WHERE e.key <> ALL ($2::text[]))) AS document FROM ";
constexpr const char* kWhole = "pulse.read_job($1::bigint) AS g";
// A worker's role sees no documents, so the row has none.
constexpr const char* kWithoutDocuments =
    "(SELECT j.state, j.job, NULL::json AS payload, NULL::json AS checkpoint, NULL::json AS result,"
    " NULL::json AS parents FROM pulse.get_job($1::bigint) AS j) AS g";

constexpr const char* kProgress =
    "SELECT pulse.progress($1::bigint, $2::bigint, d.message, d.fraction, $4::json, d.stage)"
    " FROM json_to_record($3::json) AS d (message text, fraction float8, stage text)";

constexpr const char* kComplete = "SELECT pulse.complete($1::bigint, $2::bigint, $3::json)";

constexpr const char* kFail =
    "SELECT json_build_object('state', pulse.fail($1::bigint, $2::bigint, d.error,"
    " coalesce(d.retry, true), d.retry_in, $4::json)) AS document"
    " FROM json_to_record($3::json) AS d (error text, retry boolean, retry_in interval)";

constexpr const char* kSnooze =
    "SELECT pulse.snooze($1::bigint, $2::bigint, $3::interval, $4::json)";

constexpr const char* kRelease =
    "SELECT outcome FROM pulse.release(ARRAY[$1::bigint], ARRAY[$2::bigint])";

constexpr const char* kForgetUniqueKey =
    "SELECT json_build_object('forgotten', pulse.forget_once($1, $2)) AS document";

// On record with the name of the token.
constexpr const char* kCancel =
    "SELECT json_build_object('state', pulse.cancel_job($1::bigint, $2)) AS document,"
    " pulse.note_operation('cancel job', json_build_object('job', $1::bigint::text), $3)";

Response nothing() { return {.status = http_status::kNoContent, .type = ""}; }

// Two requests are the same if their fields are equal, whatever the order, and their payloads are
// equal to the letter.
std::string request_hash(const Body& body) {
  nlohmann::json fields = body.fields;
  for (auto field = fields.begin(); field != fields.end();) {
    field = field->is_null() ? fields.erase(field) : std::next(field);
  }
  return sha256(fields.dump() + '\n' + body.document("payload").value_or(""));
}

bool has(const Body& body, const char* field) {
  return body.fields.contains(field) && !body.fields[field].is_null();
}

bool is_once_in_a_period(const Body& body) {
  return has(body, "unique_for") || has(body, "unique_key") || has(body, "unique_states");
}

// A period knows the job already, so neither another key of the job nor one of the request counts.
void check_one_way(const Request& request, const Body& body) {
  if (!is_once_in_a_period(body)) return;
  if (has(body, "job_key") || has(body, "job_key_mode") ||
      request.http.headers.contains("idempotency-key")) {
    refuse(http_status::kUnprocessableContent,
           "unique_key stands beside a job_key or an Idempotency-Key",
           "Leave out one of them: a repeated add under a unique_key adds no job.");
  }
}

QueryResult add_for(const Request& request, const Body& body,
                    const std::optional<std::string>& traceparent) {
  Params params{body.text(), traceparent, body.document("payload")};
  if (is_once_in_a_period(body)) {
    return request.database().query((std::string(kAddFrom) + kOnceAs).c_str(), params);
  }
  const bool has_key = request.http.headers.contains("idempotency-key");
  if (has_key) {
    params.insert(params.end(),
                  {request.access.token, request.header("idempotency-key"), request_hash(body)});
  }
  const std::string sql = std::string(kAddFrom) + (has_key ? kForRequest : kAlways) + kAddTo;
  return request.database().query(sql.c_str(), params);
}

// As W3C Trace Context asks, a traceparent that cannot be read is ignored.
QueryResult added_job(const Request& request, const Body& body) {
  const std::string& traceparent = request.header("traceparent");
  if (!traceparent.empty()) {
    try {
      return add_for(request, body, traceparent);
    } catch (const Refused& refused) {
      if (refused.error.sqlstate != sqlstate::kInvalidValue) throw;
    }
  }
  return add_for(request, body, std::nullopt);
}

Response post_job(const Request& request) {
  const Body body = read_body(request, {{"identifier", Is::text, true},
                                        {"payload", Is::document},
                                        {"queue_name", Is::text},
                                        {"run_at", Is::text},
                                        {"max_attempts", Is::integer},
                                        {"job_key", Is::text},
                                        {"job_key_mode", Is::text},
                                        {"priority", Is::integer},
                                        {"flags", Is::texts},
                                        {"unique_for", Is::text},
                                        {"unique_key", Is::text},
                                        {"unique_states", Is::texts}});
  check_one_way(request, body);
  const QueryResult added = added_job(request, body);
  const std::string& outcome = added[0].text("outcome");
  if (outcome == "other_request") {
    refuse(http_status::kUnprocessableContent,
           "the Idempotency-Key came with another request before",
           "Send a key of its own with each request.");
  }
  if (outcome == "in_progress") {
    refuse(http_status::kConflict, "a request with this Idempotency-Key is in progress",
           "Send it again.");
  }
  const bool is_replay = outcome == "replayed";
  const bool is_new = outcome == "added";
  Response response = document_in(added, is_new ? http_status::kCreated : http_status::kOk);
  if (is_replay) response.headers.emplace_back("Idempotent-Replayed", "true");
  response.headers.emplace_back("Location", "/v1/jobs/" + added[0].text("id"));
  return response;
}

Response get(const Request& request) {
  std::vector<std::string> hidden;
  if (!request.access.sees_payloads()) hidden.assign(kPrivateFields.begin(), kPrivateFields.end());
  const std::string sql =
      std::string(kShown) + (request.access.reads_jobs ? kWhole : kWithoutDocuments);
  return document_in(
      request.database().query(sql.c_str(), {request.parameter("id"), array_literal(hidden)}));
}

Response cancel(const Request& request) {
  const Body body = read_body(request, {{"reason", Is::text}});
  return document_in(request.database().query(
      kCancel, {request.parameter("id"), body.parameter("reason"), request.access.token}));
}

Response forget_unique_key(const Request& request) {
  const Body body =
      read_body(request, {{"identifier", Is::text, true}, {"unique_key", Is::text, true}});
  return document_in(request.database().query(
      kForgetUniqueKey, {body.parameter("identifier"), body.parameter("unique_key")}));
}

Response progress(const Request& request) {
  const Body body = read_body(request, {{"message", Is::text},
                                        {"fraction", Is::number},
                                        {"checkpoint", Is::document},
                                        {"stage", Is::text}});
  request.database().query(kProgress, {request.parameter("id"), token_of(request), body.text(),
                                       body.document("checkpoint")});
  return nothing();
}

Response complete(const Request& request) {
  const Body body = read_body(request, {{"result", Is::document}});
  request.database().query(kComplete,
                           {request.parameter("id"), token_of(request), body.document("result")});
  return nothing();
}

Response fail(const Request& request) {
  const Body body = read_body(request, {{"error", Is::text, true},
                                        {"retry", Is::truth},
                                        {"retry_in", Is::text},
                                        {"payload", Is::document}});
  return document_in(request.database().query(
      kFail, {request.parameter("id"), token_of(request), body.text(), body.document("payload")}));
}

Response snooze(const Request& request) {
  const Body body = read_body(request, {{"delay", Is::text, true}, {"checkpoint", Is::document}});
  request.database().query(kSnooze, {request.parameter("id"), token_of(request),
                                     body.parameter("delay"), body.document("checkpoint")});
  return nothing();
}

Response release(const Request& request) {
  read_body(request, {});
  const std::string id = request.parameter("id");
  const QueryResult released = request.database().query(kRelease, {id, token_of(request)});
  const std::string& outcome = released[0].text("outcome");
  if (outcome == "accepted") return nothing();
  if (outcome == "busy") {
    throw Failed({http_status::kUnavailable, "Busy", "another transaction holds job " + id, "",
                  "Try again."});
  }
  throw Failed({http_status::kConflict, "Claim lost", "the claim of job " + id + " is lost",
                sqlstate::kClaimIsOver, "The attempt was recovered or has ended."});
}

}  // namespace

void add_job_routes(Router& router) {
  router.add("POST", "/v1/jobs", Need::act, post_job);
  router.add("GET", "/v1/jobs/{id}", Need::read, get);
  router.add("DELETE", "/v1/jobs/{id}", Need::act, cancel);
  router.add("DELETE", "/v1/unique-keys", Need::act, forget_unique_key);
  router.add("PUT", "/v1/jobs/{id}/progress", Need::act, progress);
  router.add("PUT", "/v1/jobs/{id}/complete", Need::act, complete);
  router.add("PUT", "/v1/jobs/{id}/fail", Need::act, fail);
  router.add("PUT", "/v1/jobs/{id}/snooze", Need::act, snooze);
  router.add("PUT", "/v1/jobs/{id}/release", Need::act, release);
}

}  // namespace pulse::console
