#include "crontab/crontab.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/text/json_text.hpp"
#include "base/text/parse_number.hpp"
#include "base/text/percent.hpp"
#include "crontab/json5.hpp"

namespace pulse {
namespace {

constexpr std::string_view kLineBlanks = " \t\r";

struct Field {
  const char* name;
  int lowest;
  int highest;
  bool is_of_days = false;
};
constexpr std::array<Field, 5> kFields{{{"minute", 0, 59},
                                        {"hour", 0, 23},
                                        {"day", 1, 31, true},
                                        {"month", 1, 12},
                                        {"weekday", 0, 7, true}}};
constexpr int kSunday = 7;  // besides 0

// load_crontab's name of an option of the file.
struct Option {
  std::string_view name;
  const char* key;
  bool is_number = false;
};
constexpr std::array<Option, 7> kOptions{{{"id", "name"},
                                          {"fill", "fill"},
                                          {"max", "max_attempts", true},
                                          {"queue", "queue_name"},
                                          {"jobKey", "job_key"},
                                          {"jobKeyMode", "job_key_mode"},
                                          {"priority", "priority", true}}};

// The fault of a line; nothing where the line is fine.
using Problem = std::optional<std::string>;

std::string in_quotes(std::string_view text) { return '\'' + std::string(text) + '\''; }

std::string_view take_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(kLineBlanks), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(kLineBlanks));
  rest.remove_prefix(word.size());
  return word;
}

std::string_view take_until(std::string_view& rest, char separator) {
  const std::string_view part = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  return part;
}

// The values of one part of a list: *, */n, a or a-b. False: the part is none of the four.
bool read_part(std::string_view part, const Field& field, std::set<int>& values) {
  const bool is_weekday = field.highest == kSunday;
  std::optional<int> first = field.lowest;
  std::optional<int> last = is_weekday ? kSunday - 1 : field.highest;
  std::optional<int> step = 1;
  if (part.starts_with("*/")) {
    step = parse_number<int>(part.substr(2));
  } else if (part != "*") {
    const bool is_range = part.find('-') != std::string_view::npos;
    first = parse_number<int>(take_until(part, '-'));
    last = is_range ? parse_number<int>(part) : first;
    if (is_range && first >= last) return false;
  }
  if (!first || !last || !step || *step < 1) return false;
  if (*first < field.lowest || *last > field.highest) return false;
  for (int value = *first; value <= *last; value += std::min(*step, field.highest + 1)) {
    values.insert(is_weekday && value == kSunday ? 0 : value);
  }
  return true;
}

// Appends the field as the server reads it. In the server a day field that begins with a star
// restricts nothing; in the file only a field that names every day restricts nothing. So a day
// field with a star becomes a list.
Problem read_field(std::string_view text, const Field& field, std::string& cron) {
  std::set<int> values;
  std::string_view rest = text;
  bool is_right = !text.empty() && !text.ends_with(',');
  while (is_right && !rest.empty()) is_right = read_part(take_until(rest, ','), field, values);
  if (!is_right) {
    return "has the " + std::string(field.name) + ' ' + in_quotes(text) + "; use numbers from " +
           std::to_string(field.lowest) + " to " + std::to_string(field.highest) +
           ", *, */n, a-b, and lists of them";
  }
  const int all = field.highest - field.lowest + (field.highest == kSunday ? 0 : 1);
  if (!cron.empty()) cron += ' ';
  if (static_cast<int>(values.size()) == all) {
    cron += '*';
  } else if (!field.is_of_days || text.find('*') == std::string_view::npos) {
    cron += text;
  } else {
    const std::size_t begin = cron.size();
    for (const int value : values) {
      if (cron.size() > begin) cron += ',';
      cron += std::to_string(value);
    }
  }
  return std::nullopt;
}

bool is_task(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == ':' || c == '/' || c == '-';
         });
}

// 4w3d2h1m30s as an interval of the server.
std::optional<std::string> interval_of(std::string_view phrase) {
  constexpr std::string_view kUnits = "wdhms";
  constexpr std::array<const char*, 5> kNames{"weeks", "days", "hours", "minutes", "seconds"};
  std::string interval;
  while (!phrase.empty()) {
    const std::size_t letter = phrase.find_first_of(kUnits);
    if (letter == std::string_view::npos) return std::nullopt;
    const auto count = parse_number<int>(phrase.substr(0, letter));
    if (!count || *count < 0) return std::nullopt;
    interval += std::to_string(*count) + ' ' + kNames[kUnits.find(phrase[letter])] + ' ';
    phrase.remove_prefix(letter + 1);
  }
  if (interval.empty()) return std::nullopt;
  interval.pop_back();
  return interval;
}

// The members of one item's object.
class Item {
 public:
  void put_text(const std::string& key, std::string_view text) {
    begin(key);
    append_json_string(json_, text);
  }
  void put_json(const std::string& key, std::string_view value) {
    begin(key);
    json_ += value;
  }
  bool has(const std::string& key) const { return keys_.contains(key); }
  std::string object() const { return '{' + json_ + '}'; }

 private:
  void begin(const std::string& key) {
    if (!json_.empty()) json_ += ',';
    append_json_string(json_, key);
    json_ += ':';
    keys_.insert(key);
  }

  std::string json_;
  std::set<std::string> keys_;
};

Problem read_option(std::string_view text, Item& item, std::string& name) {
  const std::string_view word = take_until(text, '=');
  const auto* option = std::find_if(kOptions.begin(), kOptions.end(),
                                    [&](const Option& known) { return known.name == word; });
  if (option == kOptions.end()) return "has the unknown option " + in_quotes(word);
  if (item.has(option->key)) return "has the option " + in_quotes(word) + " twice";
  const auto value = percent_decoded(text, true);
  const auto refused = [&] {
    return "has the option " + in_quotes(word) + " of " + in_quotes(text);
  };
  if (!value || value->empty()) return refused();
  if (option->is_number) {
    const auto number = parse_number<int>(*value);
    if (!number) return refused() + ", which is no number";
    item.put_json(option->key, std::to_string(*number));
    return std::nullopt;
  }
  if (option->name == "fill") {
    const auto interval = interval_of(*value);
    if (!interval) return refused() + ", which is no time such as 4w3d2h1m";
    item.put_text(option->key, *interval);
    return std::nullopt;
  }
  if (option->name == "id") name = *value;
  item.put_text(option->key, *value);
  return std::nullopt;
}

Problem read_payload(std::string_view text, Item& item) {
  const auto json = json_of_json5(text);
  if (const auto* problem = std::get_if<std::string>(&json)) {
    return "has a payload that " + *problem;
  }
  item.put_json("payload", std::get<JsonText>(json).text);
  return std::nullopt;
}

// Reads one line into an object and the name of the schedule.
Problem read_item(std::string_view rest, std::string& object, std::string& name) {
  std::string cron;
  for (const Field& field : kFields) {
    if (auto problem = read_field(take_word(rest), field, cron)) return problem;
  }
  const std::string_view task = take_word(rest);
  if (!is_task(task)) return "names the task " + in_quotes(task) + ", which is no name of a task";
  Item item;
  item.put_text("identifier", task);
  item.put_text("cron", cron);
  std::string_view ahead = rest;
  std::string_view options = take_word(ahead);
  if (options.starts_with('?')) {
    rest = ahead;
    options.remove_prefix(1);
    while (!options.empty()) {
      if (auto problem = read_option(take_until(options, '&'), item, name)) return problem;
    }
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(kLineBlanks), rest.size()));
  if (rest.starts_with('{')) {
    if (auto problem = read_payload(rest, item)) return problem;
  } else if (!rest.empty()) {
    return "has " + in_quotes(rest) + " behind the task; options begin with ?, a payload with {";
  }
  if (name.empty()) {
    name = task;
    item.put_text("name", task);
  }
  object = item.object();
  return std::nullopt;
}

}  // namespace

std::variant<CrontabItems, std::string> parse_crontab(std::string_view text) {
  CrontabItems items;
  items.json = "[";
  std::set<std::string> names;
  constexpr std::string_view kByteOrderMark = "\ufeff";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = take_until(text, '\n');
    line.remove_prefix(std::min(line.find_first_not_of(kLineBlanks), line.size()));
    if (line.empty() || line.front() == '#') continue;
    std::string object;
    std::string name;
    auto problem = read_item(line, object, name);
    if (!problem && !names.insert(name).second) {
      problem = "names " + in_quotes(name) + ", as a line above; give it a name by ?id=";
    }
    if (problem) return "line " + std::to_string(number) + ' ' + *problem;
    if (items.count++ > 0) items.json += ',';
    items.json += object;
  }
  items.json += ']';
  return items;
}

std::variant<CrontabItems, FileRefusal> read_crontab(const std::string& path) {
  const auto read = try_trusted_file(path);
  if (const auto* refusal = std::get_if<FileRefusal>(&read)) return *refusal;
  auto parsed = parse_crontab(std::get<FileText>(read).text);
  if (auto* problem = std::get_if<std::string>(&parsed)) return FileRefusal{path + ": " + *problem};
  return std::get<CrontabItems>(std::move(parsed));
}

}  // namespace pulse
