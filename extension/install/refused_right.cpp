#include "install/refused_right.hpp"

#include "server/postgres.hpp"

extern "C" {
#include "tcop/tcopprot.h"
}

namespace pulse {
namespace {

emit_log_hook_type next_hook = nullptr;

bool is_of_name(char letter) {
  return isalnum(static_cast<unsigned char>(letter)) || letter == '_';
}

bool is_between(const char* text, const char* start, size_t length) {
  return (start == text || !is_of_name(start[-1])) && !is_of_name(start[length]);
}

bool has_word(const char* text, const char* word, size_t length) {
  for (const char* at = text; *at; at++) {
    if (pg_strncasecmp(at, word, length) == 0 && is_between(text, at, length)) return true;
  }
  return false;
}

// The schemas whose objects each grant covers.
constexpr const char* kSchemas[] = {"pulse", "pulse_citus"};

// A kind of role, and what it may call or name that most other kinds may not. SQL decides which
// rights a kind has; a test compares. No kind is named for what is an operator's.
struct Kind {
  const char* grant;
  const char* purpose;
  const char* objects;
};

constexpr Kind kKinds[] = {
    {"grant_producer", "to add jobs",
     "add_dependency add_flow add_job add_job_after add_job_for_request add_job_once add_jobs "
     "forget_once remove_job job_spec job_state"},
    {"grant_caller", "to wait for jobs", "ended wait_for_end finished_state"},
    {"grant_worker", "to run jobs",
     "attach_worker call_handler check_host claim claim_job complete complete_many declare_lost "
     "deregister_worker fail fail_late fail_many fence get_job handler_tasks heartbeat held "
     "held_job perform_job progress register_worker release serve_tasks snooze sweep task_limits "
     "wait_for_job claimed_job job_outcome"},
    {"grant_scheduler", "for schedules",
     "cron_runs load_crontab next_runs pause_schedule resume_schedule run_schedule_now schedule "
     "unschedule schedules"},
};

// Each kind may call these.
constexpr const char kOfAll[] = "now version";

// A part of a text; empty: none.
struct Name {
  const char* start;
  size_t length;
};

// The first object of the schema that a text names, as in pulse.add_job or "pulse"."add_job", and
// that the message names too: the message has no schema, and may be in any language.
Name named_object(const char* text, const char* schema, const char* message) {
  const size_t length = strlen(schema);
  for (const char* at = text; at && *at; at++) {
    if (pg_strncasecmp(at, schema, length) != 0 || !is_between(text, at, length)) continue;
    const char* name = at + length + strspn(at + length, "\" ");
    if (*name != '.') continue;
    name += 1 + strspn(name + 1, "\" ");
    size_t name_length = 0;
    while (is_of_name(name[name_length])) name_length++;
    if (name_length > 0 && (!message || has_word(message, name, name_length)))
      return {name, name_length};
  }
  return {};
}

// The object of the schema that the statement names, or a statement of a function that the
// statement calls.
Name refused_object(const ErrorData& error, const char* schema, const char* message) {
  Name object = named_object(debug_query_string, schema, message);
  return object.length > 0 ? object : named_object(error.context, schema, message);
}

// Whether the message refuses a schema of pg_pulse, of which the object is the first that is
// called, or an object of such a schema.
bool names_pulse(const ErrorData& error, Name* object) {
  const bool is_of_schema = strcmp(error.message_id, "permission denied for schema %s") == 0;
  for (const char* schema : kSchemas) {
    if (is_of_schema && !has_word(error.message, schema, strlen(schema))) continue;
    *object = refused_object(error, schema, is_of_schema ? nullptr : error.message);
    if (is_of_schema || object->length > 0) return true;
  }
  return false;
}

bool refuses_pulse(const ErrorData& error, Name* object) {
  static constexpr char kRefused[] = "permission denied for ";
  return error.elevel == ERROR && error.sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE &&
         !error.hint && error.message && error.message_id &&
         strncmp(error.message_id, kRefused, sizeof(kRefused) - 1) == 0 &&
         names_pulse(error, object);
}

// As the argument of a grant. After an error no catalogue may be read, so the name is known only of
// a session that acts as its own user. Port, which has the name too, needs the headers of Kerberos.
const char* acting_role() {
  const char* session_user = GetConfigOption("session_authorization", true, false);
  if (!session_user || !*session_user || GetUserId() != GetSessionUserId()) return "'ROLE'";
  return quote_literal_cstr(quote_identifier(session_user));
}

const Kind* kind_of(Name object) {
  for (const Kind& kind : kKinds)
    if (has_word(kind.objects, object.start, object.length)) return &kind;
  return nullptr;
}

char* grants_of(Name object) {
  if (object.length == 0 || has_word(kOfAll, object.start, object.length))
    return psprintf(
        "The owner of pg_pulse grants rights by kind of role: SELECT pulse.grant_producer(%s) to "
        "add jobs; likewise grant_caller to wait for jobs, grant_worker to run jobs, "
        "grant_scheduler for schedules, grant_operator to read and change all, grant_observer to "
        "read the views.",
        acting_role());
  if (const Kind* kind = kind_of(object))
    return psprintf("The owner of pg_pulse grants the right: SELECT pulse.%s(%s) %s.", kind->grant,
                    acting_role(), kind->purpose);
  return psprintf(
      "The owner of pg_pulse grants the right: SELECT pulse.grant_operator(%s) to read and change "
      "all; likewise grant_observer to read the views, which show no payload.",
      acting_role());
}

// The server keeps the hint as long as the error.
extern "C" void pulse_emit_log(ErrorData* error) {
  if (next_hook) next_hook(error);
  Name object = {};
  if (refuses_pulse(*error, &object)) error->hint = grants_of(object);
}

}  // namespace

void hint_at_grants() {
  next_hook = emit_log_hook;
  emit_log_hook = pulse_emit_log;
}

}  // namespace pulse
