// bench-drain: N sessions take all ready jobs of one task. Prints what was done as a line of JSON.
// In portions: as many jobs as each line of its input says, and a line for each of them.
#include <getopt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "drainer.hpp"
#include "graphile_drainer.hpp"

namespace {

constexpr const char* kUsage =
    "usage: bench-drain [--connections N] [--batch N] [--task NAME] [--commit together|each]\n"
    "                   [--system pulse|graphile | --portions]\n";

struct Options {
  int connections = 4;
  bool is_graphile = false;
  bool in_portions = false;
  bench::DrainOptions drain;
};

Options read_options(int argc, char** argv) {
  static const option names[] = {{"connections", required_argument, nullptr, 'n'},
                                 {"batch", required_argument, nullptr, 'b'},
                                 {"task", required_argument, nullptr, 't'},
                                 {"commit", required_argument, nullptr, 'c'},
                                 {"system", required_argument, nullptr, 's'},
                                 {"portions", no_argument, nullptr, 'p'},
                                 {nullptr, 0, nullptr, 0}};
  Options options;
  for (int name; (name = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
    std::string value = optarg ? optarg : "";
    if (name == 'n' && std::atoi(optarg) > 0) {
      options.connections = std::atoi(optarg);
    } else if (name == 'b' && std::atoi(optarg) > 0) {
      options.drain.batch = std::atoi(optarg);
    } else if (name == 't') {
      options.drain.task = value;
    } else if (name == 'p') {
      options.in_portions = true;
    } else if (name == 's' && (value == "pulse" || value == "graphile")) {
      options.is_graphile = value == "graphile";
    } else if (name == 'c' && (value == "together" || value == "each")) {
      options.drain.commit = value == "each" ? bench::DrainOptions::Commit::kEach
                                             : bench::DrainOptions::Commit::kTogether;
    } else {
      std::fputs(kUsage, stderr);
      std::exit(64);
    }
  }
  if (options.in_portions && options.is_graphile) {
    std::fputs(kUsage, stderr);
    std::exit(64);
  }
  return options;
}

std::string name_of(int number) { return "bench_drain_" + std::to_string(number); }

bench::Drained drain_alone(const Options& options, int number) {
  if (options.is_graphile) return bench::GraphileDrainer(name_of(number), options.drain).run();
  bench::Drainer drainer(name_of(number), options.drain);
  bench::Portion all;
  bench::Drained drained = drainer.run(all);
  drainer.deregister();
  return drained;
}

// Every session does its part at the same time. Prints what was done.
void drain(int connections, const std::function<bench::Drained(int)>& part) {
  auto start = std::chrono::steady_clock::now();
  std::vector<std::future<bench::Drained>> parts;
  for (int i = 0; i < connections; i++) parts.push_back(std::async(std::launch::async, part, i));
  bench::Drained total;
  for (auto& each : parts) {
    bench::Drained done = each.get();
    total.jobs += done.jobs;
    total.claims += done.claims;
    total.payload_bytes += done.payload_bytes;
  }
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("{\"jobs\": %lld, \"seconds\": %.4f, \"claims\": %lld, \"payload_bytes\": %lld}\n",
              static_cast<long long>(total.jobs), took.count(),
              static_cast<long long>(total.claims), static_cast<long long>(total.payload_bytes));
  std::fflush(stdout);
}

void drain_in_portions(const Options& options) {
  std::vector<std::unique_ptr<bench::Drainer>> drainers;
  for (int i = 0; i < options.connections; i++)
    drainers.push_back(std::make_unique<bench::Drainer>(name_of(i), options.drain));
  for (std::int64_t jobs; std::cin >> jobs;) {
    bench::Portion portion(jobs);
    drain(options.connections, [&](int i) { return drainers[i]->run(portion); });
  }
  for (auto& drainer : drainers) drainer->deregister();
}

}  // namespace

int main(int argc, char** argv) {
  Options options = read_options(argc, argv);
  try {
    if (options.in_portions)
      drain_in_portions(options);
    else
      drain(options.connections, [&](int i) { return drain_alone(options, i); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-drain: %s\n", error.what());
    return 1;
  }
  return 0;
}
