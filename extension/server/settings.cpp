#include "server/settings.hpp"

#include "server/compat.hpp"

#include <climits>

namespace pulse {

Settings settings;

namespace {

constexpr int kDayMs = 24 * 3600 * 1000;
constexpr int kDefaultSweepIntervalMs = 5000;
constexpr size_t kTraceparentLength = 55;
constexpr size_t kMaxTraceparentLength = 255;

// 0 would mean "without a pause" or "at once", and no setting with this check can have such a
// value.
bool refuse_zero(int* value, void**, GucSource) {
  if (*value != 0) return true;
  GUC_check_errdetail("0 is not a duration.");
  GUC_check_errhint("Use -1 to switch it off.");
  return false;
}

// Refuses a malformed list, so the background worker can always parse the value.
bool check_databases(char** value, void**, GucSource) {
  char* list = pstrdup(*value);
  List* names = NIL;
  bool readable = SplitGUCList(list, ',', &names);
  list_free(names);
  pfree(list);
  if (!readable) GUC_check_errdetail("It must be a list of names, separated by commas.");
  return readable;
}

bool is_hex(const char* text, int length) {
  return static_cast<int>(strspn(text, "0123456789abcdef")) >= length;
}

// version-traceid-parentid-flags, as in the W3C recommendation Trace Context; a version above 00
// may go on after another hyphen.
bool is_traceparent(const char* text) {
  if (strlen(text) < kTraceparentLength || strlen(text) > kMaxTraceparentLength) return false;
  const bool has_parts = is_hex(text, 2) && text[2] == '-' && is_hex(text + 3, 32) &&
                         text[35] == '-' && is_hex(text + 36, 16) && text[52] == '-' &&
                         is_hex(text + 53, 2);
  const char end = text[kTraceparentLength];
  return has_parts && strncmp(text, "ff", 2) != 0 && strspn(text + 3, "0") < 32 &&
         strspn(text + 36, "0") < 16 &&
         (end == '\0' || (end == '-' && strncmp(text, "00", 2) != 0));
}

bool check_traceparent(char** value, void**, GucSource) {
  if (**value == '\0' || is_traceparent(*value)) return true;
  GUC_check_errdetail("It is not a traceparent of W3C Trace Context.");
  GUC_check_errhint(
      "Use version-traceid-parentid-flags in lower-case hexadecimal digits, such as "
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01, or '' for none.");
  return false;
}

void define_duration(const char* name, const char* description, int* value, int boot, int min,
                     int unit, GucIntCheckHook check = nullptr) {
  int max = unit == GUC_UNIT_MS ? kDayMs : INT_MAX;
  DefineCustomIntVariable(name, description, nullptr, value, boot, min, max, PGC_SUSET, unit, check,
                          nullptr, nullptr);
}

void define_liveness_settings() {
  define_duration("pulse.heartbeat_interval", "Interval between heartbeats of a worker.",
                  &settings.heartbeat_interval_ms, 5000, 10, GUC_UNIT_MS);
  define_duration("pulse.sweep_interval",
                  "Interval between sweeps for lost workers; -1 disables automatic sweeps.",
                  &settings.sweep_interval_ms, kDefaultSweepIntervalMs, -1, GUC_UNIT_MS,
                  refuse_zero);
  define_duration("pulse.sweep_threshold", "Time without a heartbeat after which a worker is lost.",
                  &settings.sweep_threshold_ms, 20000, 10, GUC_UNIT_MS);
  DefineCustomIntVariable("pulse.sweep_jobs",
                          "Jobs that the background worker or pulse-worker recovers at most in one "
                          "transaction.",
                          nullptr, &settings.sweep_jobs, 1000, 1, 1000000, PGC_SUSET, 0, nullptr,
                          nullptr, nullptr);
  define_duration(
      "pulse.disconnect_grace",
      "Time a worker has to re-attach after its attached session ended; -1 ignores the end.",
      &settings.disconnect_grace_ms, 2000, -1, GUC_UNIT_MS);
  define_duration("pulse.default_timeout",
                  "Time limit of an attempt, for tasks without a timeout; -1 means none.",
                  &settings.default_timeout_ms, -1, -1, GUC_UNIT_MS, refuse_zero);
  define_duration("pulse.poll_interval",
                  "Interval between claims of a worker that no commit can wake.",
                  &settings.poll_interval_ms, 1000, 10, GUC_UNIT_MS);
  DefineCustomIntVariable("pulse.max_crashes",
                          "Worker losses after which a job running at each of them is quarantined; "
                          "-1 means never.",
                          nullptr, &settings.max_crashes, 3, -1, 32767, PGC_SUSET, 0, nullptr,
                          nullptr, nullptr);
  DefineCustomRealVariable("pulse.clock_offset",
                           "Shifts the time that pg_pulse sees in this session; for tests only.",
                           nullptr, &settings.clock_offset_s, 0.0, -1e9, 1e9, PGC_SUSET, GUC_UNIT_S,
                           nullptr, nullptr, nullptr);
  DefineCustomRealVariable("pulse.frozen_clock",
                           "Stops the time that pg_pulse sees in this session at the start of the "
                           "transaction, and the liveness clock at these microseconds; -1 lets "
                           "time run. For tests only.",
                           nullptr, &settings.frozen_live_us, -1.0, -1.0, 9e15, PGC_SUSET, 0,
                           nullptr, nullptr, nullptr);
}

// Storage that the server requires; the show hook computes the displayed value.
bool background_sweeps = false;

void define_retention_settings() {
  define_duration("pulse.keep_completed",
                  "Time completed jobs are kept; 0 deletes them at once, -1 keeps them for ever.",
                  &settings.keep_completed_s, 0, -1, GUC_UNIT_S);
  define_duration("pulse.keep_failed",
                  "Time jobs that ended without completing are kept; -1 keeps them for ever.",
                  &settings.keep_failed_s, -1, -1, GUC_UNIT_S);
  define_duration("pulse.keep_attempts", "Time attempts are kept; -1 keeps them for ever.",
                  &settings.keep_attempts_s, 30 * 24 * 3600, -1, GUC_UNIT_S);
  define_duration("pulse.keep_idempotency_keys",
                  "Time a key of add_job_for_request is kept, so that a repeated request adds no "
                  "job; -1 keeps them for ever.",
                  &settings.keep_idempotency_keys_s, 24 * 3600, -1, GUC_UNIT_S);
}

}  // namespace

void define_settings(GucShowHook show_background_sweeps) {
  define_liveness_settings();
  define_retention_settings();
  DefineCustomBoolVariable("pulse.claims", "Allows claims on this server.", nullptr,
                           &settings.claims, true, PGC_SUSET, 0, nullptr, nullptr, nullptr);
  DefineCustomBoolVariable(
      "pulse.events", "Notifies channel pulse_events of recoveries, expiries and paused queues.",
      nullptr, &settings.events, true, PGC_SUSET, 0, nullptr, nullptr, nullptr);
  DefineCustomBoolVariable(
      "pulse.host_check", "Lets a starting worker recover jobs of earlier workers of its machine.",
      nullptr, &settings.host_check, true, PGC_SUSET, 0, nullptr, nullptr, nullptr);
  DefineCustomBoolVariable("pulse.allow_drop", "Allows DROP EXTENSION while live jobs exist.",
                           nullptr, &settings.allow_drop, false, PGC_SUSET, 0, nullptr, nullptr,
                           nullptr);
  DefineCustomBoolVariable("pulse.enable_counters",
                           "Counts attempts per task and queue; only a preloaded library counts.",
                           nullptr, &settings.enable_counters, true, PGC_SUSET, 0, nullptr, nullptr,
                           nullptr);
  DefineCustomStringVariable(
      "pulse.databases", "Sets the databases in which the background worker runs.", nullptr,
      &settings.databases, "", PGC_SIGHUP, GUC_LIST_INPUT, check_databases, nullptr, nullptr);
  DefineCustomBoolVariable(
      "pulse.background_sweeps", "Shows whether the background worker sweeps in this database.",
      nullptr, &background_sweeps, false, PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
      nullptr, nullptr, show_background_sweeps);
  DefineCustomStringVariable(
      "pulse.traceparent",
      "Sets the W3C traceparent of the jobs that this session adds; '' for none.", nullptr,
      &settings.traceparent, "", PGC_USERSET, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
      check_traceparent, nullptr, nullptr);
  reserve_settings("pulse");
}

int64 longest_tick_us() {
  int interval_ms =
      settings.sweep_interval_ms > 0 ? settings.sweep_interval_ms : kDefaultSweepIntervalMs;
  return static_cast<int64>(interval_ms) * 1250;
}

}  // namespace pulse

// pulse_internal.setting_us(name): a duration setting in microseconds; NULL: the setting is -1.
PULSE_FUNCTION(pulse_setting_us) {
  char* name = psprintf("pulse.%s", text_to_cstring(PG_GETARG_TEXT_PP(0)));
  // The text has a unit, such as 5s or 30d.
  const char* shown = GetConfigOptionByName(name, nullptr, false);
  if (strcmp(shown, "-1") == 0) PG_RETURN_NULL();
  const Interval* duration = DatumGetIntervalP(DirectFunctionCall3(
      interval_in, CStringGetDatum(shown), ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
  PG_RETURN_INT64(duration->day * USECS_PER_DAY + duration->time);
}

PULSE_FUNCTION(pulse_max_crashes) { PG_RETURN_INT32(pulse::settings.max_crashes); }

PULSE_FUNCTION(pulse_events_on) { PG_RETURN_BOOL(pulse::settings.events); }
