#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <system_error>

#include "base/log/standard_streams.hpp"
#include "base/log/terminal.hpp"
#include "base/text/exhaustion.hpp"
#include "base/text/inert.hpp"
#include "worker_process.hpp"

namespace pulse {
namespace {

int end_early(const EarlyExit& early) {
  // The text quotes words that may come from any writer.
  const std::string text = inert(early.text, Lines::kept);
  std::fputs(text.c_str(), early.code == ExitCode::drained ? stdout : stderr);
  return static_cast<int>(early.code);
}

void set_up_process() {
  // Else the allocator keeps the memory of large payloads, once one was freed.
  constexpr int kLarge = 256 * 1024;
  mallopt(M_MMAP_THRESHOLD, kLarge);
  // Processes that a killed minder leaves behind come to this process to be reaped.
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  // A task can read a process of the same user: neither memory nor environment of this process.
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ConnectOptions::forget_password();
  // A write that fails says so. SIGUSR2 means nothing here, and would end the process.
  for (const int number : {SIGPIPE, SIGXFSZ, SIGUSR2}) std::signal(number, SIG_IGN);
}

// Ends the process after an exception that no code has caught. Where the machine had no memory or
// descriptors, the cause is printed instead of a dump.
[[noreturn]] void end_uncaught() noexcept {
  constexpr auto kExhausted = static_cast<int>(ExitCode::exhausted);
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    std::fputs("pulse-worker: out of memory\n", stderr);
    std::_Exit(kExhausted);
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "pulse-worker: %s\n", error.what());
    std::_Exit(kExhausted);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pulse-worker: %s\n", error.what());
  } catch (...) {
  }
  std::abort();
}

int run_process(const Config& config) {
  // Takes environment variables, so before any thread is started.
  Watchers watchers;
  watchers.service_manager = ServiceManager::take_wishes();
  auto found = read_surroundings(config, environ);
  if (const auto* early = std::get_if<EarlyExit>(&found)) return end_early(*early);
  set_up_process();
  const SystemClock clock;
  const Terminal terminal =
      Terminal::detect(STDERR_FILENO, [](const char* name) { return getenv(name); });
  ProgressSummary progress(clock, [&] { return terminal.columns(); });
  Log log(config.log_format, config.log_level, STDERR_FILENO,
          terminal.takes_colour(config.log_format) ? LogColour::by_outcome : LogColour::none);
  std::unique_ptr<Status> status;
  if (config.http) {
    int error = 0;
    auto started = Status::start(*config.http, config.http_names, clock, log, &error);
    if (const auto* problem = std::get_if<std::string>(&started)) {
      return end_early({is_exhaustion(error) ? ExitCode::exhausted : ExitCode::configuration,
                        "--http: " + *problem + "\n"});
    }
    status = std::move(std::get<std::unique_ptr<Status>>(started));
  }
  watchers.status = status.get();
  if (terminal.is_there) watchers.terminal = STDERR_FILENO;
  if (config.once && terminal.takes_rewriting(config.log_format)) {
    watchers.progress = &progress;
    progress.show(log);
  }
  const ExitCode code = WorkerProcess(config, std::get<Surroundings>(found), watchers, log).run();
  log.forget_listeners();
  return static_cast<int>(code);
}

}  // namespace
}  // namespace pulse

int main(int argc, char** argv) {
  pulse::open_standard_streams();
  std::set_terminate(pulse::end_uncaught);
  auto parsed = pulse::parse_command_line(argc, argv);
  if (const auto* early = std::get_if<pulse::EarlyExit>(&parsed)) return pulse::end_early(*early);
  return pulse::run_process(std::get<pulse::Config>(parsed));
}
