#include <iostream>
#include <nlohmann/json.hpp>
#include <pulse/worker.hpp>

using nlohmann::json;
using pg_pulse::Job;
using pg_pulse::Outcome;

int main(int argc, char** argv) {
  pg_pulse::Worker worker({.database = argc > 1 ? argv[1] : "", .handle_signals = true});

  // Returns: completed. Throws: failed with what(), and tried again.
  worker.handle("greet", [](Job& job) {
    std::cout << "hello " << job.payload_as<json>().at("name").get<std::string>() << std::endl;
  });

  // Long work reports progress, stops when told to, and goes on from the same place the next time.
  worker.handle("count", [](Job& job) {
    const int goal = job.payload_as<json>().at("to");
    for (int n = job.checkpoint_as<json>().value_or(0); n < goal; ++n) {
      const std::string here = std::to_string(n);
      if (job.stop_requested()) return Outcome::snooze(std::chrono::seconds(0), here);
      job.report({.fraction = double(n) / goal, .checkpoint = here});
    }
    return Outcome::success(json{{"counted", goal}}.dump());
  });

  // Many jobs at once, an answer for each.
  worker.handle_batch("index", 100, [](std::span<Job> jobs) {
    std::vector<Outcome> answers;
    for (const Job& job : jobs) {
      const bool is_known = job.payload_as<json>().contains("page");
      answers.push_back(is_known ? Outcome::success() : Outcome::final_failure("no page"));
    }
    return answers;
  });

  return worker.run();
}
