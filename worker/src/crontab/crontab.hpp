// A crontab file in Graphile Worker's grammar:
//   minute hour day month weekday task ?id=…&fill=4w3d2h1m&max=…&queue=…&jobKey=…&jobKeyMode=…&
//   priority=… {payload: 'in JSON5'}
// in UTC, with numbers, *, steps of *, ranges and lists. See
// https://worker.graphile.org/docs/cron#crontab-file.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/text/trusted_file.hpp"

namespace pulse {

// The argument of pulse.load_crontab: an array of objects.
struct CrontabItems {
  std::string json = "[]";
  int count = 0;
};

// The items of a text, or which line is wrong, and how.
std::variant<CrontabItems, std::string> parse_crontab(std::string_view text);

// The same of a file, which only the owner may write.
std::variant<CrontabItems, FileRefusal> read_crontab(const std::string& path);

}  // namespace pulse
