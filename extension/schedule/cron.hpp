// Cron rules: owns the meaning of the five fields of crontab(5), and the instants at which a rule
// falls due in a time zone. A minute is an instant in whole minutes since 1970; a local minute is a
// minute of the zone's clock.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr uint64 kLastDay = 1;  // no month has a day 0

// The values that each field matches, as bits.
struct CronRule {
  uint64 minutes;
  uint64 hours;
  uint64 days;  // of the month, and kLastDay
  uint64 months;
  uint64 weekdays;
  bool has_day_star;  // a field of days begins with *: both must match, else either may
  bool is_periodic;   // minute or hour begins with *
};

// Parses a rule. Raises PU004 for a text that is not a rule.
void parse_cron(const char* text, CronRule* rule);

// Walks over the due minutes of a rule in ascending order.
struct CronWalk {
  const CronRule* rule;
  pg_tz* zone;
  int64 at;       // the first minute that the walk has not judged
  int64 highest;  // the greatest local minute before `at`
};

// Begins a walk at the minute `first`.
void begin_cron_walk(CronWalk* walk, const CronRule* rule, pg_tz* zone, int64 first);

// Finds the next due minute. False when no minute below the limit is due.
bool next_cron_minute(CronWalk* walk, int64 limit, int64* due);

}  // namespace pulse
