#include "schedule/cron.hpp"

#include "server/errors.hpp"

extern "C" {
#include "utils/datetime.h"
}

namespace pulse {
namespace {

constexpr int kMinutesPerDay = 24 * 60;
// No two clocks of a zone's history differ by more: older local minutes do not reach the present.
constexpr int64 kStepBack = 33 * 60;

struct Field {
  const char* name;
  int lowest;
  int highest;
  int values;  // number of different values: 7 is another name of weekday 0
  const char* const* words;
};
constexpr const char* kNoWords[] = {nullptr};
constexpr const char* kMonths[] = {"january",  "february", "march",  "april",     "may",
                                   "june",     "july",     "august", "september", "october",
                                   "november", "december", nullptr};
constexpr const char* kWeekdays[] = {"sunday",   "monday", "tuesday",  "wednesday",
                                     "thursday", "friday", "saturday", nullptr};
constexpr Field kFields[] = {{"minute", 0, 59, 60, kNoWords},
                             {"hour", 0, 23, 24, kNoWords},
                             {"day of the month", 1, 31, 31, kNoWords},
                             {"month", 1, 12, 12, kMonths},
                             {"day of the week", 0, 7, 7, kWeekdays}};
constexpr int kFieldCount = 5;
constexpr const Field* kDayField = &kFields[2];

struct Nickname {
  const char* name;
  const char* fields;
};
constexpr Nickname kNicknames[] = {{"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},
                                   {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},
                                   {"@monthly", "0 0 1 * *"},  {"@yearly", "0 0 1 1 *"},
                                   {"@annually", "0 0 1 1 *"}};

// Syntax of other crons, by a typical sign, and the replacement here.
struct Foreign {
  const char* sign;
  const char* instead;
};
constexpr Foreign kForeign[] = {
    {"=", "Name the zone in time_zone, not in the rule."},
    {"?", "Write * instead of ?."},
    {"~", "Write a value: none is chosen at random."},
    {"#", "Name the weekday alone, and let the task ask which one of its month it is."},
    {"H", "Write a value of your own instead of H, another one in each schedule."},
    {"W", "Name days, or MON-FRI, and let the task ask whether the day is the one that you mean."},
    {"L",
     "L is the last day of the month, and stands alone. For the last weekday of its name, "
     "name that weekday, and let the task ask whether the next one is in another month."}};
constexpr Foreign kForeignNicknames[] = {
    {"@reboot", "A schedule has due times only: call add_job where your program starts."},
    {"@every", "Leave cron out, and give every => '10 min'."}};

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool ends_field(char c) { return c == '\0' || is_blank(c); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

size_t letters_at(const char* at) {
  size_t count = 0;
  while (is_letter(at[count])) count++;
  return count;
}

// Whether a field has the sign. A letter within a word of three letters or more is no sign.
bool has_sign(const char* field, const char* sign) {
  constexpr size_t kShortestWord = 3;
  for (const char* at = field; !ends_field(*at); at++) {
    size_t letters = letters_at(at);
    for (size_t i = 0; letters < kShortestWord && (i == 0 || i < letters); i++)
      if (pg_strncasecmp(at + i, sign, 1) == 0) return true;
    if (letters > 0) at += letters - 1;
  }
  return false;
}

[[noreturn]] void refuse(const char* text, const Field& field, const char* at) {
  const char* instead = nullptr;
  for (const Foreign& foreign : kForeign)
    if (!instead && has_sign(at, foreign.sign)) instead = foreign.instead;
  ereport(ERROR,
          (errcode(kOutOfRange),
           errmsg("cron rule %s has an unknown %s", quote_literal_cstr(text), field.name),
           instead ? errhint("%s", instead)
                   : errhint("Use *, or values from %d to %d, ranges a-b, steps */n, a/n and "
                             "a-b/n, and lists.",
                             field.lowest, field.highest)));
}

// Reads a number or a name of the field; false when the text has neither.
bool read_value(const char** at, const Field& field, int* value) {
  if (is_digit(**at)) {
    *value = 0;
    for (int digits = 0; is_digit(**at); (*at)++) {
      if (++digits > 2) return false;
      *value = *value * 10 + (**at - '0');
    }
    return *value >= field.lowest && *value <= field.highest;
  }
  constexpr size_t kShort = 3;
  size_t letters = letters_at(*at);
  for (int i = 0; field.words[i]; i++) {
    bool has_length = letters == kShort || letters == strlen(field.words[i]);
    if (!has_length || pg_strncasecmp(*at, field.words[i], letters) != 0) continue;
    *value = field.lowest + i;
    *at += letters;
    return true;
  }
  return false;
}

bool read_step(const char** at, int* step) {
  constexpr Field kStep = {"step", 1, 99, 99, kNoWords};
  return is_digit(**at) && read_value(at, kStep, step);
}

// Reads one part of a list, and adds its values. A range whose end comes before its begin leads
// over the last value to the first value.
bool read_part(const char** at, const Field& field, uint64* values) {
  if (&field == kDayField && (**at == 'L' || **at == 'l') && letters_at(*at) == 1) {
    (*at)++;
    *values |= kLastDay;
    return true;
  }
  int first = field.lowest;
  int last = field.lowest + field.values - 1;
  if (**at == '*') {
    (*at)++;
  } else {
    if (!read_value(at, field, &first)) return false;
    if (**at == '-') {
      if (!read_value(&++*at, field, &last)) return false;
    } else if (**at != '/') {
      last = first;  // with a step, the part goes on to the last value
    }
  }
  int step = 1;
  if (**at == '/' && !read_step(&++*at, &step)) return false;
  int steps = last - first + (last < first ? field.values : 0);
  for (int i = 0; i <= steps; i += step)
    *values |= UINT64CONST(1) << (field.lowest + (first - field.lowest + i) % field.values);
  return true;
}

uint64 read_field(const char** at, const char* text, const Field& field) {
  const char* begin = *at;
  uint64 values = 0;
  if (!read_part(at, field, &values)) refuse(text, field, begin);
  while (**at == ',')
    if (!read_part(&++*at, field, &values)) refuse(text, field, begin);
  if (!ends_field(**at)) refuse(text, field, begin);
  return values;
}

[[noreturn]] void refuse_nickname(const char* text, const char* at) {
  const char* instead = "Use five fields, or @hourly, @daily, @weekly, @monthly or @yearly.";
  for (const Foreign& foreign : kForeignNicknames)
    if (pg_strncasecmp(at, foreign.sign, strlen(foreign.sign)) == 0) instead = foreign.instead;
  ereport(ERROR,
          (errcode(kOutOfRange), errmsg("cron rule %s is not known", quote_literal_cstr(text)),
           errhint("%s", instead)));
}

const char* fields_of(const char* text) {
  const char* at = text;
  while (is_blank(*at)) at++;
  if (*at != '@') return at;
  for (const auto& nickname : kNicknames) {
    size_t length = strlen(nickname.name);
    if (pg_strncasecmp(at, nickname.name, length) != 0) continue;
    const char* rest = at + length;
    while (is_blank(*rest)) rest++;
    if (*rest == '\0') return nickname.fields;
  }
  refuse_nickname(text, at);
}

void check_field_count(const char* text, const char* at) {
  if (has_sign(at, "=")) refuse(text, kFields[0], at);
  int count = 0;
  while (*at) {
    count++;
    while (!ends_field(*at)) at++;
    while (is_blank(*at)) at++;
  }
  if (count == kFieldCount) return;
  ereport(ERROR, (errcode(kOutOfRange),
                  errmsg("cron rule %s has %s than five fields", quote_literal_cstr(text),
                         count < kFieldCount ? "fewer" : "more"),
                  errhint("They are minute, hour, day of the month, month, day of the week: no "
                          "second (every => '10 s' has them), and no year.")));
}

bool has_bit(uint64 values, int value) { return (values >> value) & 1; }

bool matches_day(const CronRule& rule, int year, int month, int day, int weekday) {
  bool is_last = day == day_tab[isleap(year)][month - 1];
  bool by_day = has_bit(rule.days, day) || (is_last && (rule.days & kLastDay));
  bool by_weekday = has_bit(rule.weekdays, weekday);
  return rule.has_day_star ? by_day && by_weekday : by_day || by_weekday;
}

// The first matching minute of a day, from `from` on, counted from midnight; -1: none.
int first_of_day(const CronRule& rule, int from) {
  for (int hour = from / 60; hour < 24; hour++) {
    if (!has_bit(rule.hours, hour)) continue;
    uint64 minutes = rule.minutes;
    if (hour == from / 60) minutes &= ~UINT64CONST(0) << (from % 60);
    if (minutes) return hour * 60 + __builtin_ctzll(minutes);
  }
  return -1;
}

// The first matching local minute at or after `from` and below `limit`; false: none.
bool first_match(const CronRule& rule, int64 from, int64 limit, int64* found) {
  int64 day = from >= 0 ? from / kMinutesPerDay : -((-from - 1) / kMinutesPerDay) - 1;
  int minute = static_cast<int>(from - day * kMinutesPerDay);
  for (; day * kMinutesPerDay < limit; minute = 0) {
    int year, month, month_day;
    int julian = static_cast<int>(day + UNIX_EPOCH_JDATE);
    j2date(julian, &year, &month, &month_day);
    if (!has_bit(rule.months, month)) {
      day = date2j(month == 12 ? year + 1 : year, month % 12 + 1, 1) - UNIX_EPOCH_JDATE;
      CHECK_FOR_INTERRUPTS();
      continue;
    }
    bool matches = matches_day(rule, year, month, month_day, j2day(julian));
    int in_day = matches ? first_of_day(rule, minute) : -1;
    if (in_day >= 0) {
      *found = day * kMinutesPerDay + in_day;
      return *found < limit;
    }
    day++;
  }
  return false;
}

// The minutes with one offset from UTC.
struct Segment {
  int64 offset;
  int64 end;
};

Segment segment_at(int64 minute, pg_tz* zone) {
  pg_time_t time = minute * 60;
  pg_time_t boundary;
  long before;
  long after;
  int before_is_dst;
  int after_is_dst;
  int found =
      pg_next_dst_boundary(&time, &before, &before_is_dst, &boundary, &after, &after_is_dst, zone);
  if (found < 0) elog(ERROR, "time zone \"%s\" cannot be read", pg_get_timezone_name(zone));
  // An offset of old local times has seconds, which a clock in whole minutes does not show.
  int64 offset = before >= 0 ? before / 60 : -((-before + 59) / 60);
  if (found == 0) return {offset, PG_INT64_MAX / 2};
  return {offset, boundary >= 0 ? (boundary + 59) / 60 : -(-boundary / 60)};
}

}  // namespace

void parse_cron(const char* text, CronRule* rule) {
  const char* at = fields_of(text);
  check_field_count(text, at);
  uint64* const values[kFieldCount] = {&rule->minutes, &rule->hours, &rule->days, &rule->months,
                                       &rule->weekdays};
  bool is_star[kFieldCount];
  for (int i = 0; i < kFieldCount; i++) {
    is_star[i] = *at == '*';
    *values[i] = read_field(&at, text, kFields[i]);
    while (is_blank(*at)) at++;
  }
  rule->is_periodic = is_star[0] || is_star[1];
  rule->has_day_star = is_star[2] || is_star[4];
}

void begin_cron_walk(CronWalk* walk, const CronRule* rule, pg_tz* zone, int64 first) {
  *walk = {rule, zone, first, PG_INT64_MIN};
  for (int64 minute = first - kStepBack; minute < first;) {
    Segment segment = segment_at(minute, zone);
    minute = Min(segment.end, first);
    walk->highest = Max(walk->highest, minute - 1 + segment.offset);
  }
}

// A minute that the zone's clock skips falls due at the first minute after the gap. A minute that
// the clock repeats falls due the first time only. A periodic rule follows the clock as it runs.
bool next_cron_minute(CronWalk* walk, int64 limit, int64* due) {
  while (walk->at < limit) {
    Segment segment = segment_at(walk->at, walk->zone);
    int64 end = Min(segment.end, limit);
    int64 local = walk->at + segment.offset;
    int64 from = walk->rule->is_periodic ? local : walk->highest + 1;
    int64 match;
    bool is_due = first_match(*walk->rule, from, end + segment.offset, &match);
    if (is_due) *due = Max(walk->at, match - segment.offset);
    int64 judged = is_due ? *due : end - 1;
    walk->highest = Max(walk->highest, judged + segment.offset);
    walk->at = judged + 1;
    if (is_due) return true;
  }
  return false;
}

}  // namespace pulse
