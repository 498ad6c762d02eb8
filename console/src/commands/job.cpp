// pulse job: everything about one job.
#include "command_line/command_line.hpp"
#include "command_line/filter_options.hpp"
#include "commands/commands.hpp"
#include "job/job_page.hpp"

namespace pulse::console {

void add_job(CommandLine& line) {
  auto id = std::make_shared<std::string>();
  const auto run = [id](Console& console) {
    const JobPage page = read_job_page(console.database, *id);
    if (console.options.is_json) {
      console.print_json(job_page_json(page));
    } else {
      console.output.print(job_page_text(page, console.output.style()));
    }
    return ExitStatus::done;
  };
  line.add("job", "Everything about one job, and why it waits", run)
      .add_option("ID", *id, "Id of the job")
      ->required()
      ->check(is_id());
}

}  // namespace pulse::console
