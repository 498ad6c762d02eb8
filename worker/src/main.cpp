#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <random>

#include "identity.hpp"
#include "signals.hpp"
#include "strangers.hpp"
#include "task_starter.hpp"
#include "worker.hpp"

namespace pulse {
namespace {

int end_early(ExitCode code, const std::string& text) {
  std::fputs(text.c_str(), code == ExitCode::drained ? stdout : stderr);
  return static_cast<int>(code);
}

// One engine for all copies: connections that drew the same delays would come back together.
Random random_source() {
  const auto engine = std::make_shared<std::mt19937_64>(std::random_device{}());
  return [engine] { return std::uniform_real_distribution<double>(0.0, 1.0)(*engine); };
}

// What the folder serves now; what it does not serve is said.
std::vector<std::string> read_tasks(const TaskFolder& folder, Log& log) {
  TaskFolder::Listing listing = folder.list();
  for (const TaskRefusal& refusal : listing.refusals) {
    log.warning("task_refused", {{"reason", refusal.reason}});
  }
  const auto count = static_cast<std::int64_t>(listing.identifiers.size());
  log.write(count == 0 ? LogLevel::warning : LogLevel::info, "tasks",
            {{"folder", folder.path()}, {"count", count}});
  return std::move(listing.identifiers);
}

ExitCode run(const Config& config, const ConnectOptions& options, const TaskFolder& folder,
             const std::string& minder_path, Log& log) {
  const SystemClock clock;
  EventLoop loop(clock);
  const auto claim = make_connection(loop, options);
  const auto finish = make_connection(loop, options);
  const auto heartbeat = make_connection(loop, options);
  Worker worker(config, identity_json(read_identity()), options.deadline(),
                {*claim, *finish, *heartbeat}, task_starter(loop, folder, minder_path),
                loop.timers(), random_source(), log);
  ExitCode exit_code = ExitCode::drained;
  worker.on_finished = [&](ExitCode code) {
    exit_code = code;
    loop.stop();
  };
  Signals signals(loop);
  signals.on(SIGTERM, [&] { worker.stop(); });
  signals.on(SIGINT, [&] { worker.stop(); });
  signals.on(SIGHUP, [&] { worker.serve(read_tasks(folder, log)); });
  worker.serve(read_tasks(folder, log));
  worker.start();
  loop.run();
  reap_strangers();
  return exit_code;
}

int run_process(const Config& config) {
  // Before any thread is started: this reads and borrows environment variables.
  auto options = ConnectOptions::read(config.database, "pulse-worker " + config.name);
  if (const auto* problem = std::get_if<std::string>(&options)) {
    return end_early(ExitCode::usage, "--database: " + *problem + "\n");
  }
  TaskRefusal refusal;
  const auto folder = TaskFolder::open(config.tasks, refusal);
  if (!folder) return end_early(ExitCode::configuration, "--tasks: " + refusal.reason + "\n");
  const std::string minder_path = find_minder();
  if (minder_path.empty()) {
    return end_early(ExitCode::configuration, "pulse-minder is not installed with pulse-worker\n");
  }
  // What a killed minder leaves behind comes to this process to be reaped.
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  std::signal(SIGPIPE, SIG_IGN);
  Log log(config.log_format, config.log_level, STDERR_FILENO);
  return static_cast<int>(
      run(config, std::get<ConnectOptions>(options), *folder, minder_path, log));
}

}  // namespace
}  // namespace pulse

int main(int argc, char** argv) {
  auto parsed = pulse::parse_command_line(argc, argv);
  if (const auto* early = std::get_if<pulse::EarlyExit>(&parsed)) {
    return pulse::end_early(early->code, early->text);
  }
  return pulse::run_process(std::get<pulse::Config>(parsed));
}
