#include "finish/backoff.hpp"

#include "access/columns.hpp"
#include "claim/claiming_worker.hpp"
#include "job/task_settings.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"

extern "C" {
#include <math.h>
}

namespace pulse {
namespace {

constexpr double kMaxS = 315360000;  // ten years
constexpr double kFixedS = 10;
constexpr int kMaxPowersOfE = 10;
constexpr int kMaxDoublings = 40;

TaskRule default_rule() {
  return {TaskRule::kExponential,        false, 0, false, 0, 0, settings.max_crashes,
          settings.keep_completed_s != 0};
}

// The seconds that date_part('epoch', …) returns.
double seconds_of(Datum interval) {
  const Interval* span = DatumGetIntervalP(interval);
  constexpr double kDay = SECS_PER_DAY;
  return static_cast<double>(span->time) / USECS_PER_SEC +
         DAYS_PER_YEAR * kDay * (span->month / MONTHS_PER_YEAR) +
         DAYS_PER_MONTH * kDay * (span->month % MONTHS_PER_YEAR) + kDay * span->day;
}

TaskRule rule_in_row(const Datum* values, const bool* nulls) {
  TaskRule rule = default_rule();
  auto has = [nulls](TaskColumn column) { return !nulls[column - 1]; };
  auto value = [values](TaskColumn column) { return values[column - 1]; };
  if (has(kTaskBackoff) && text_is(value(kTaskBackoff), "fixed")) rule.kind = TaskRule::kFixed;
  if (has(kTaskBackoff) && text_is(value(kTaskBackoff), "none")) rule.kind = TaskRule::kNone;
  rule.has_base = has(kTaskBackoffBase);
  if (rule.has_base) rule.base_s = seconds_of(value(kTaskBackoffBase));
  rule.has_cap = has(kTaskBackoffCap);
  if (rule.has_cap) rule.cap_s = seconds_of(value(kTaskBackoffCap));
  if (has(kTaskJitter)) rule.jitter = DatumGetFloat8(value(kTaskJitter));
  if (has(kTaskMaxCrashes)) rule.max_crashes = DatumGetInt32(value(kTaskMaxCrashes));
  if (has(kTaskKeepCompleted))
    rule.keeps_completed = trunc(seconds_of(value(kTaskKeepCompleted)) * USECS_PER_SEC) != 0;
  return rule;
}

double plain_seconds(const TaskRule& rule, int attempts) {
  switch (rule.kind) {
    case TaskRule::kNone: return 0;
    case TaskRule::kFixed: return rule.has_base ? rule.base_s : kFixedS;
    default:
      if (!rule.has_base) return exp(Min(kMaxPowersOfE, attempts));
      return rule.base_s * pow(2, Min(kMaxDoublings, attempts) - 1);
  }
}

}  // namespace

TaskRule task_rule(Datum identifier, Snapshot snapshot) {
  TaskRule rule = default_rule();
  with_task_row(identifier, snapshot, [&rule](TupleTableSlot* row) {
    slot_getallattrs(row);
    rule = rule_in_row(row->tts_values, row->tts_isnull);
  });
  return rule;
}

bool some_task_keeps_completed(Snapshot snapshot) {
  if (settings.keep_completed_s != 0) return true;
  return any_task(snapshot,
                  [](TupleTableSlot* row) { return !slot_attisnull(row, kTaskKeepCompleted); });
}

int64 backoff_us(const TaskRule& rule, int attempts) {
  double seconds = plain_seconds(rule, attempts);
  if (rule.has_cap) seconds = Min(seconds, rule.cap_s);
  if (rule.jitter > 0) {
    double fraction = DatumGetFloat8(drandom(nullptr));
    seconds *= 1 + rule.jitter * (2 * fraction - 1);
  }
  return static_cast<int64>(rint(Min(Max(seconds, 0), kMaxS) * USECS_PER_SEC));
}

}  // namespace pulse

// pulse._keeps_completed(identifier)
PULSE_FUNCTION(pulse_keeps_completed) {
  PG_RETURN_BOOL(pulse::task_rule(PG_GETARG_DATUM(0), GetActiveSnapshot()).keeps_completed);
}
