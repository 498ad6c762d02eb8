// bench-drain: N sessions take all ready jobs of one task. Prints what was done as a line of JSON.
#include <getopt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <string>
#include <vector>

#include "drainer.hpp"
#include "graphile_drainer.hpp"

namespace {

constexpr const char* kUsage =
    "usage: bench-drain [--connections N] [--batch N] [--task NAME] [--commit together|each]\n"
    "                   [--system pulse|graphile]\n";

struct Options {
  int connections = 4;
  bool is_graphile = false;
  bench::DrainOptions drain;
};

Options read_options(int argc, char** argv) {
  static const option names[] = {
      {"connections", required_argument, nullptr, 'n'}, {"batch", required_argument, nullptr, 'b'},
      {"task", required_argument, nullptr, 't'},        {"commit", required_argument, nullptr, 'c'},
      {"system", required_argument, nullptr, 's'},      {nullptr, 0, nullptr, 0}};
  Options options;
  for (int name; (name = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
    std::string value = optarg ? optarg : "";
    if (name == 'n' && std::atoi(optarg) > 0) {
      options.connections = std::atoi(optarg);
    } else if (name == 'b' && std::atoi(optarg) > 0) {
      options.drain.batch = std::atoi(optarg);
    } else if (name == 't') {
      options.drain.task = value;
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
  return options;
}

bench::Drained drain_alone(const Options& options, int number) {
  std::string name = "bench_drain_" + std::to_string(number);
  if (options.is_graphile) return bench::GraphileDrainer(name, options.drain).run();
  return bench::Drainer(name, options.drain).run();
}

bench::Drained drain(const Options& options) {
  std::vector<std::future<bench::Drained>> drainers;
  for (int i = 0; i < options.connections; i++)
    drainers.push_back(
        std::async(std::launch::async, [&options, i] { return drain_alone(options, i); }));
  bench::Drained total;
  for (auto& drainer : drainers) {
    bench::Drained part = drainer.get();
    total.jobs += part.jobs;
    total.claims += part.claims;
    total.payload_bytes += part.payload_bytes;
  }
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = read_options(argc, argv);
  try {
    auto start = std::chrono::steady_clock::now();
    bench::Drained total = drain(options);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("{\"jobs\": %lld, \"seconds\": %.4f, \"claims\": %lld, \"payload_bytes\": %lld}\n",
                static_cast<long long>(total.jobs), took.count(),
                static_cast<long long>(total.claims), static_cast<long long>(total.payload_bytes));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-drain: %s\n", error.what());
    return 1;
  }
  return 0;
}
