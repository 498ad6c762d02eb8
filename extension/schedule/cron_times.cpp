#include "schedule/cron.hpp"
#include "server/errors.hpp"

namespace pulse {
namespace {

constexpr int kMaxTimes = 100000;
constexpr int64 kMinuteUs = 60 * USECS_PER_SEC;
constexpr int64 kEpochUs =
    static_cast<int64>(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
// Limits of the server's calendar, as minutes since 1970: 4700 BC to AD 290000.
constexpr int64 kFirstMinute = -INT64CONST(3500000000);
constexpr int64 kLastMinute = INT64CONST(151000000000);

// The first minute after the time.
int64 minute_after(TimestampTz time) {
  if (TIMESTAMP_IS_NOBEGIN(time)) return kFirstMinute;
  if (TIMESTAMP_IS_NOEND(time)) return kLastMinute;
  int64 us = time + kEpochUs;
  int64 minute = us >= 0 ? us / kMinuteUs : -((-us + kMinuteUs - 1) / kMinuteUs);
  return Min(Max(minute + 1, kFirstMinute), kLastMinute);
}

pg_tz* zone_named(const text* name) {
  char* wanted = text_to_cstring(name);
  pg_tz* zone = strlen(wanted) <= TZ_STRLEN_MAX ? pg_tzset(wanted) : nullptr;
  return zone && pg_tz_acceptable(zone) ? zone : nullptr;
}

}  // namespace
}  // namespace pulse

// pulse_internal.zone_name(time_zone): the name as the server spells it; NULL: no such zone.
PULSE_FUNCTION(pulse_zone_name) {
  pg_tz* zone = pulse::zone_named(PG_GETARG_TEXT_PP(0));
  if (!zone) PG_RETURN_NULL();
  PG_RETURN_TEXT_P(cstring_to_text(pg_get_timezone_name(zone)));
}

// pulse_internal.cron_times(cron, time_zone, after, until, max_times): the due times of a rule.
PULSE_FUNCTION(pulse_cron_times) {
  pulse::CronRule rule = {};
  pulse::parse_cron(text_to_cstring(PG_GETARG_TEXT_PP(0)), &rule);
  pg_tz* zone = pulse::zone_named(PG_GETARG_TEXT_PP(1));
  if (!zone)
    ereport(ERROR, (errcode(pulse::kOutOfRange),
                    errmsg("time zone %s is not known",
                           quote_literal_cstr(text_to_cstring(PG_GETARG_TEXT_PP(1)))),
                    errhint("Use a name of pg_timezone_names, such as Europe/Berlin.")));
  int64 limit = pulse::minute_after(PG_GETARG_TIMESTAMPTZ(3));
  int wanted = Min(Max(PG_GETARG_INT32(4), 0), pulse::kMaxTimes);
  pulse::CronWalk walk;
  pulse::begin_cron_walk(&walk, &rule, zone, pulse::minute_after(PG_GETARG_TIMESTAMPTZ(2)));
  auto* times = static_cast<Datum*>(palloc(sizeof(Datum) * Max(wanted, 1)));
  int count = 0;
  int64 due;
  for (; count < wanted && pulse::next_cron_minute(&walk, limit, &due); count++) {
    CHECK_FOR_INTERRUPTS();
    times[count] = TimestampTzGetDatum(due * pulse::kMinuteUs - pulse::kEpochUs);
  }
  PG_RETURN_ARRAYTYPE_P(construct_array(times, count, TIMESTAMPTZOID, sizeof(TimestampTz),
                                        FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}
