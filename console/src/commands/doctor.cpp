// pulse doctor: the faults of this installation, and the way out of each fault.
#include "base/text/inert.hpp"
#include "command_line/command_line.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"
#include "output/table.hpp"
#include "text/width.hpp"

namespace pulse::console {
namespace {

std::string findings_text(const QueryResult& findings, const Style& style) {
  if (findings.empty()) return style.tinted("nothing is wrong", Tint::good) + '\n';
  std::string text;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const std::string severity = inert(findings[i].text("severity"));
    const auto field = [&](const char* name) {
      return inert(findings[i].optional_text(name).value_or(""));
    };
    text += style.tinted(pad(severity, 9), tint_of_state(severity)) +
            style.tinted(field("finding"), Tint::strong) + "\n         " + field("detail") +
            "\n         " + field("what_to_do") + '\n';
  }
  return text;
}

ExitStatus examine(Console& console) {
  const QueryResult findings = console.database.query(finding_list().sql);
  if (console.options.is_json) {
    console.print_json(json_list(finding_list().columns, findings));
  } else {
    console.output.print(findings_text(findings, console.output.style()));
  }
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (findings[i].text("severity") != "notice") return ExitStatus::refused;
  }
  return ExitStatus::done;
}

}  // namespace

void add_doctor(CommandLine& line) {
  line.add("doctor", "What is wrong, and what to do; ends with 1 if more than notices", examine);
}

}  // namespace pulse::console
