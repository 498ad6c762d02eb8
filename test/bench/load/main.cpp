// bench-load: registered workers that idle, beat and run jobs, producers on a schedule; one
// process, one thread, any number of sessions. Prints what was done as a line of JSON.
#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <string>

#include "load.hpp"

namespace {

using bench::LoadOptions;
using Failing = bench::ClaimerOptions::Failing;

constexpr int kUsage = 64;

[[noreturn]] void usage(int status) {
  std::fputs(
      "usage: bench-load [OPTION]...\n"
      "  --workers N        registered, with a session each that waits and claims (1)\n"
      "  --batch N          jobs of a claim (1)\n"
      "  --fail HOW         every other job fails: retried (once, at once) or forgood (none)\n"
      "  --beating N        registered besides, that only beat (0)\n"
      "  --beat-sessions N  through which all beat; 0: nobody does (1)\n"
      "  --beat-ms N        the interval of a worker's beats (2000)\n"
      "  --producers N      sessions that add jobs; 0: what is there is drained (0)\n"
      "  --rate N           jobs per second, on a schedule; 0: as fast as it goes (0)\n"
      "  --together N       jobs of one call of a producer (1)\n"
      "  --payload N        bytes of padding of each payload (0)\n"
      "  --task NAME        of the jobs (load)\n"
      "  --idle SECONDS     measured first, without jobs (0)\n"
      "  --warm SECONDS     of jobs that are not measured (0)\n"
      "  --seconds SECONDS  of jobs that are (0)\n"
      "  --jobs N           add, and end when so many have ended (0)\n"
      "  --slice SECONDS    tell also of each so many (0)\n",
      status ? stderr : stdout);
  std::exit(status);
}

Failing failing_of(const std::string& how) {
  if (how == "none") return Failing::kNone;
  if (how == "retried") return Failing::kRetried;
  if (how == "forgood") return Failing::kForGood;
  usage(kUsage);
}

std::map<std::string, std::function<void(const char*)>> readers(LoadOptions* options) {
  auto number = [](auto* into) {
    return [into](const char* text) {
      char* end = nullptr;
      double value = std::strtod(text, &end);
      if (*end != '\0' || end == text || value < 0) usage(kUsage);
      *into = static_cast<std::remove_reference_t<decltype(*into)>>(value);
    };
  };
  bench::ProducerOptions* producers = &options->producers;
  return {
      {"workers", number(&options->workers)},
      {"batch", number(&options->claimer.batch)},
      {"fail", [options](const char* how) { options->claimer.failing = failing_of(how); }},
      {"beating", number(&options->beating)},
      {"beat-sessions", number(&options->beat_sessions)},
      {"beat-ms", number(&options->beat_ms)},
      {"producers", number(&producers->sessions)},
      {"rate", number(&producers->rate)},
      {"together", number(&producers->together)},
      {"payload", number(&producers->payload_bytes)},
      {"task", [producers](const char* task) { producers->task = task; }},
      {"idle", number(&options->idle_seconds)},
      {"warm", number(&options->warm_seconds)},
      {"seconds", number(&options->seconds)},
      {"jobs", number(&options->jobs)},
      {"slice", number(&options->slice_seconds)},
  };
}

LoadOptions read_options(int argc, char** argv) {
  LoadOptions options;
  auto reader = readers(&options);
  std::vector<option> known;
  for (const auto& [name, read] : reader)
    known.push_back({name.c_str(), required_argument, nullptr, 0});
  known.push_back({"help", no_argument, nullptr, 'h'});
  known.push_back({});
  int index = 0;
  for (int found; (found = getopt_long(argc, argv, "h", known.data(), &index)) != -1;) {
    if (found == 'h') usage(0);
    if (found != 0) usage(kUsage);
    reader.at(known[index].name)(optarg);
  }
  if (optind < argc || options.producers.together < 1 || options.claimer.batch < 1 ||
      options.beat_ms < 1)
    usage(kUsage);
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  LoadOptions options = read_options(argc, argv);
  try {
    bench::Load(options).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-load: %s\n", error.what());
    return 1;
  }
  return 0;
}
