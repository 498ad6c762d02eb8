// bench-proofs NAME [-- COMMAND…]: one proof on the server that libpq's environment names. Exits 1
// when something is broken, 2 when the proof could not be made.
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "proofs.hpp"

namespace {

using Proof = std::function<void(bench::Report*, const std::vector<std::string>&)>;

Proof alone(void (*prove)(bench::Report*)) {
  return [prove](bench::Report* report, const std::vector<std::string>&) { prove(report); };
}

const std::map<std::string, Proof> kProofs = {
    {"claimed_once", alone(bench::prove_claimed_once)},
    {"queues", alone(bench::prove_queues)},
    {"claim_wal", alone(bench::prove_claim_wal)},
    {"empty_claims", alone(bench::prove_empty_claims)},
    {"wait_latency", alone(bench::prove_wait_latency)},
    {"server_kills", bench::prove_server_kills},
    {"sweep", alone(bench::prove_sweep)},
    {"cron", alone(bench::prove_cron)},
    {"views", alone(bench::prove_views)},
};

}  // namespace

int main(int argc, char** argv) {
  auto proof = kProofs.find(argc > 1 ? argv[1] : "");
  if (proof == kProofs.end()) {
    std::fprintf(stderr, "usage: bench-proofs NAME [-- COMMAND that restarts the server]\n");
    for (const auto& known : kProofs) std::fprintf(stderr, "  %s\n", known.first.c_str());
    return 64;
  }
  std::vector<std::string> command;
  for (int i = 3; i < argc && std::strcmp(argv[2], "--") == 0; i++) command.emplace_back(argv[i]);
  bench::Report report;
  try {
    bench::Session("proof").script("CREATE EXTENSION pg_pulse");
    proof->second(&report, command);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-proofs: %s: %s\n", argv[1], error.what());
    return 2;
  }
  return report.is_broken() ? 1 : 0;
}
