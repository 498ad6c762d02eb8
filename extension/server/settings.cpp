#include "server/settings.hpp"

#include "server/shared_memory.hpp"

#include "server/compat.hpp"

#include <climits>

namespace pulse {

Settings settings;

namespace {

constexpr int kDayMs = 24 * 3600 * 1000;
constexpr int kDefaultSweepIntervalMs = 5000;

// 0 would mean "without a pause" or "at once", which no reader of these settings can mean.
bool refuse_zero(int* value, void**, GucSource) {
  if (*value != 0) return true;
  GUC_check_errmsg("0 is not a duration; use -1 to switch it off");
  return false;
}

// A list that cannot be read is refused here, so that the background worker always can.
bool check_databases(char** value, void**, GucSource) {
  char* list = pstrdup(*value);
  List* names = NIL;
  bool readable = SplitGUCList(list, ',', &names);
  list_free(names);
  pfree(list);
  if (!readable) GUC_check_errdetail("It must be a list of names, separated by commas.");
  return readable;
}

void define_duration(const char* name, const char* description, int* value, int boot, int min,
                     int unit, GucIntCheckHook check = nullptr) {
  int max = unit == GUC_UNIT_MS ? kDayMs : INT_MAX;
  DefineCustomIntVariable(name, description, nullptr, value, boot, min, max, PGC_SUSET, unit, check,
                          nullptr, nullptr);
}

void define_liveness_settings() {
  define_duration("pulse.heartbeat_interval", "How often a worker checks in.",
                  &settings.heartbeat_interval_ms, 5000, 10, GUC_UNIT_MS);
  define_duration(
      "pulse.sweep_interval", "How often lost workers are looked for; -1 means by hand only.",
      &settings.sweep_interval_ms, kDefaultSweepIntervalMs, -1, GUC_UNIT_MS, refuse_zero);
  define_duration("pulse.sweep_threshold", "Silence after which a worker is lost.",
                  &settings.sweep_threshold_ms, 20000, 10, GUC_UNIT_MS);
  define_duration("pulse.disconnect_grace",
                  "Time to re-attach after an attached session ended; -1 means its end is ignored.",
                  &settings.disconnect_grace_ms, 2000, -1, GUC_UNIT_MS);
  define_duration(
      "pulse.default_timeout",
      "Absolute limit of an attempt, for tasks without one of their own; -1 means none.",
      &settings.default_timeout_ms, -1, -1, GUC_UNIT_MS, refuse_zero);
  define_duration("pulse.poll_interval", "How often a worker looks when nothing can wake it.",
                  &settings.poll_interval_ms, 1000, 10, GUC_UNIT_MS);
  DefineCustomIntVariable("pulse.max_crashes",
                          "Worker deaths a job may be present at before it is quarantined; "
                          "-1 means never.",
                          nullptr, &settings.max_crashes, 3, -1, 32767, PGC_SUSET, 0, nullptr,
                          nullptr, nullptr);
  DefineCustomRealVariable("pulse.clock_offset",
                           "Moves the time that pg_pulse sees in this session; for tests only.",
                           nullptr, &settings.clock_offset_s, 0.0, -1e9, 1e9, PGC_SUSET, GUC_UNIT_S,
                           nullptr, nullptr, nullptr);
}

// Nobody sets it: what is shown is looked up.
bool background_sweeps = false;

extern "C" const char* pulse_show_background_sweeps() {
  DatabaseState* database = this_database_if_known();
  if (!database && is_preloaded() && IsTransactionState()) database = this_database();
  return database && pg_atomic_read_u32(&database->maintainer.is_serving) ? "on" : "off";
}

void define_retention_settings() {
  define_duration("pulse.keep_completed",
                  "How long completed jobs are kept; 0 means not at all, -1 for ever.",
                  &settings.keep_completed_s, 0, -1, GUC_UNIT_S);
  define_duration("pulse.keep_failed",
                  "How long failed, quarantined and cancelled jobs are kept; -1 means for ever.",
                  &settings.keep_failed_s, -1, -1, GUC_UNIT_S);
  define_duration("pulse.keep_attempts", "How long attempts are kept; -1 means for ever.",
                  &settings.keep_attempts_s, 30 * 24 * 3600, -1, GUC_UNIT_S);
}

}  // namespace

void define_settings() {
  define_liveness_settings();
  define_retention_settings();
  DefineCustomBoolVariable("pulse.claims", "Whether this server hands out jobs.", nullptr,
                           &settings.claims, true, PGC_SUSET, 0, nullptr, nullptr, nullptr);
  DefineCustomBoolVariable("pulse.events", "Whether recoveries are announced on pulse_events.",
                           nullptr, &settings.events, true, PGC_SUSET, 0, nullptr, nullptr,
                           nullptr);
  DefineCustomBoolVariable(
      "pulse.allow_drop", "Whether the extension may be dropped while there are live jobs.",
      nullptr, &settings.allow_drop, false, PGC_SUSET, 0, nullptr, nullptr, nullptr);
  DefineCustomStringVariable("pulse.databases", "Databases in which the background worker runs.",
                             nullptr, &settings.databases, "", PGC_SIGHUP, GUC_LIST_INPUT,
                             check_databases, nullptr, nullptr);
  DefineCustomBoolVariable(
      "pulse.background_sweeps", "Whether the background worker sweeps in this database.", nullptr,
      &background_sweeps, false, PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE, nullptr,
      nullptr, pulse_show_background_sweeps);
  reserve_settings("pulse");
}

int64 longest_tick_us() {
  int interval_ms =
      settings.sweep_interval_ms > 0 ? settings.sweep_interval_ms : kDefaultSweepIntervalMs;
  return static_cast<int64>(interval_ms) * 1250;
}

}  // namespace pulse

// pulse._setting_us(name): a duration setting in microseconds, NULL when it is -1.
PULSE_FUNCTION(pulse_setting_us) {
  struct Duration {
    const char* name;
    const int* value;
    int64 unit_us;
  };
  static const Duration durations[] = {
      {"heartbeat_interval", &pulse::settings.heartbeat_interval_ms, 1000},
      {"sweep_interval", &pulse::settings.sweep_interval_ms, 1000},
      {"sweep_threshold", &pulse::settings.sweep_threshold_ms, 1000},
      {"disconnect_grace", &pulse::settings.disconnect_grace_ms, 1000},
      {"default_timeout", &pulse::settings.default_timeout_ms, 1000},
      {"poll_interval", &pulse::settings.poll_interval_ms, 1000},
      {"keep_completed", &pulse::settings.keep_completed_s, USECS_PER_SEC},
      {"keep_failed", &pulse::settings.keep_failed_s, USECS_PER_SEC},
      {"keep_attempts", &pulse::settings.keep_attempts_s, USECS_PER_SEC},
  };
  char* name = text_to_cstring(PG_GETARG_TEXT_PP(0));
  for (const Duration& duration : durations)
    if (strcmp(duration.name, name) == 0) {
      if (*duration.value < 0) PG_RETURN_NULL();
      PG_RETURN_INT64(*duration.value * duration.unit_us);
    }
  elog(ERROR, "no duration setting is called \"%s\"", name);
}

PULSE_FUNCTION(pulse_max_crashes) { PG_RETURN_INT32(pulse::settings.max_crashes); }

PULSE_FUNCTION(pulse_events_on) { PG_RETURN_BOOL(pulse::settings.events); }
