#include "serve/form.hpp"

#include <algorithm>

#include "base/text/percent.hpp"

namespace pulse::console {
namespace {

constexpr std::size_t kMaxEntries = 1'000;

}  // namespace

const std::string& Form::get(std::string_view name) const {
  static const std::string kNone;
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == entries_.end() ? kNone : found->second;
}

std::optional<std::string> Form::find(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::vector<std::string> Form::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : entries_) {
    if (key == name) values.push_back(value);
  }
  return values;
}

void Form::add(std::string name, std::string value) {
  entries_.emplace_back(std::move(name), std::move(value));
}

std::optional<Form> parse_form(std::string_view text) {
  Form form;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    if (entry.empty()) continue;
    const std::size_t equals = std::min(entry.find('='), entry.size());
    auto name = percent_decoded(entry.substr(0, equals), true);
    auto value = percent_decoded(entry.substr(std::min(equals + 1, entry.size())), true);
    if (!name || !value || form.entries().size() == kMaxEntries) return std::nullopt;
    form.add(std::move(*name), std::move(*value));
  }
  return form;
}

}  // namespace pulse::console
