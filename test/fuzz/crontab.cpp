// A crontab file, with payloads in JSON5.
#include "crontab/crontab.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "crontab/json5.hpp"
#include "target.hpp"

namespace pulse::fuzz {

void crontab(std::string_view input) {
  const auto parsed = parse_crontab(input);
  if (const auto* problem = std::get_if<std::string>(&parsed)) {
    promise(problem->starts_with("line "), "a mistake is named by its line");
  } else {
    const auto& items = std::get<CrontabItems>(parsed);
    const auto json = nlohmann::json::parse(items.json, nullptr, /*allow_exceptions=*/false);
    promise(json.is_array() && static_cast<int>(json.size()) == items.count,
            "items are an array of JSON");
    for (const auto& item : json) {
      promise(item.contains("name") && item.contains("identifier") && item.contains("cron"),
              "each has what load_crontab needs");
    }
  }
  const auto value = json_of_json5(input);
  if (const auto* json = std::get_if<JsonText>(&value)) {
    promise(nlohmann::json::accept(json->text), "JSON5 becomes JSON");
    const auto again = json_of_json5(json->text);
    const auto* same = std::get_if<JsonText>(&again);
    promise(same != nullptr && same->text == json->text, "JSON stays as it is");
  }
}

}  // namespace pulse::fuzz
