#include "task/supervised/minder_line.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "liveness/identity.hpp"
#include "task/supervised/orphans.hpp"

namespace pulse {
namespace {

using minder::Order;
using minder::Report;

constexpr std::chrono::milliseconds kOrphanInterval{20};
// Ten seconds: a process that SIGKILL has not ended by then hangs in the kernel and cannot be
// waited for.
constexpr int kMaxOrphanChecks = 500;

MinderLine* owner(void* data) noexcept { return static_cast<MinderLine*>(data); }

// The process that asks whether this worker's minders are gone knows the worker by pid and start.
const std::string& name_of_worker() {
  static const std::string name = std::to_string(getpid()) + '.' + read_process_start(getpid());
  return name;
}

// How pulse-minder is called; see worker/minder/main.cpp.
std::vector<std::string> command_of(const MinderLine::Plan& plan) {
  std::vector<std::string> command{plan.minder_path};
  if (plan.rules.may_gain_privileges) command.emplace_back("-p");
  if (plan.rules.open_files != 0) {
    command.insert(command.end(), {"-n", std::to_string(plan.rules.open_files)});
  }
  command.insert(command.end(), {"-w", name_of_worker()});
  command.insert(command.end(), plan.arguments.begin(), plan.arguments.end());
  return command;
}

std::vector<char*> as_pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

MinderLine::MinderLine(uv_loop_t* loop, Listener listener,
                       std::chrono::milliseconds patience) noexcept
    : loop_(loop), listener_(std::move(listener)), patience_(patience) {}

int MinderLine::start(uv_loop_t* loop, const Plan& plan, BootClock::time_point first_deadline,
                      Listener listener, std::shared_ptr<MinderLine>& started) {
  std::array<int, 2> line{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, line.data()) != 0) {
    return uv_translate_sys_error(errno);
  }
  const UniqueFd minder_end(line[1]);
  const std::shared_ptr<MinderLine> created(
      new MinderLine(loop, std::move(listener), plan.patience));
  created->line_.reset(line[0]);
  // Before the minder exists, so that there is no moment without a deadline.
  created->set_deadline(first_deadline);

  auto timer = std::make_unique<uv_timer_t>();
  uv_timer_init(loop, timer.get());
  timer->data = created.get();
  created->timer_ = own_handle(std::move(timer));
  if (const int code = created->watch_line(); code != 0) return code;
  if (const int code = created->spawn(plan, minder_end.get()); code != 0) return code;
  created->self_ = created;
  started = created;
  return 0;
}

int MinderLine::watch_line() {
  auto watch = std::make_unique<uv_poll_t>();
  const int code = uv_poll_init(loop_, watch.get(), line_.get());
  if (code != 0) return code;
  watch->data = this;
  line_watch_ = own_handle(std::move(watch));
  return uv_poll_start(line_watch_.get(), UV_READABLE, [](uv_poll_t* ready, int, int) {
    owner(ready->data)->shared_from_this()->read_reports();
  });
}

int MinderLine::spawn(const Plan& plan, int line_fd) {
  std::array<uv_stdio_container_t, minder::kFdCount> descriptors{};
  const auto inherit = [&](int as, int fd) {
    descriptors.at(static_cast<std::size_t>(as)).flags = UV_INHERIT_FD;
    descriptors.at(static_cast<std::size_t>(as)).data.fd = fd;
  };
  inherit(minder::kStdinFd, plan.stdin_fd);
  inherit(minder::kStdoutFd, plan.stdout_fd);
  inherit(minder::kStderrFd, plan.stderr_fd);
  inherit(minder::kPulseFd, plan.pulse_fd);
  inherit(minder::kLineFd, line_fd);
  inherit(minder::kDirectoryFd, plan.directory_fd);
  inherit(minder::kFileFd, plan.file_fd);
  inherit(minder::kWorkDirectoryFd, plan.work_directory_fd);

  const std::vector<std::string> command = command_of(plan);
  std::vector<char*> arguments = as_pointers(command);
  std::vector<char*> environment = as_pointers(plan.environment);
  uv_process_options_t options{};
  options.file = plan.minder_path.c_str();
  options.args = arguments.data();
  options.env = environment.data();
  options.stdio = descriptors.data();
  options.stdio_count = minder::kFdCount;
  options.exit_cb = [](uv_process_t* process, std::int64_t exit_code, int signal) {
    owner(process->data)->shared_from_this()->on_exit(exit_code, signal);
  };
  auto process = std::make_unique<uv_process_t>();
  process->data = this;
  const int code = uv_spawn(loop_, process.get(), &options);
  process_ = own_handle(std::move(process));  // also a failed one has to be closed
  return code;
}

// A stopped minder would never report the end of the task: SIGCONT lets it go on and read.
void MinderLine::set_deadline(BootClock::time_point deadline) noexcept {
  send(Order::kPing, deadline);
  if (process_) uv_process_kill(process_.get(), SIGCONT);
}

void MinderLine::terminate(std::chrono::milliseconds grace) noexcept {
  if (has_reported_end_ || !process_) return;
  send(Order::kTerminate, BootClock::now() + grace);
  // If the task has stopped the minder, let the minder go on and read.
  uv_process_kill(process_.get(), SIGCONT);
  expect_exit_within(grace + patience_);
}

void MinderLine::hang_up() noexcept {
  is_listening_ = false;
  line_watch_.reset();
  line_.reset();
  if (!process_) return;
  uv_process_kill(process_.get(), SIGCONT);
  expect_exit_within(patience_);
}

void MinderLine::send(Order::Kind kind, BootClock::time_point at) noexcept {
  const Order order{kind, 0, at.time_since_epoch().count()};
  // When the line is full or closed, the minder is stopped or dead, and on_exit or the timer acts.
  ::send(line_.get(), &order, sizeof order, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void MinderLine::read_reports() {
  while (line_.valid()) {
    Report report{};
    const ssize_t size = recv(line_.get(), &report, sizeof report, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size != sizeof report) {
      // Closed: the minder is ending; its exit tells the rest.
      line_watch_.reset();
      line_.reset();
      return;
    }
    has_reported_end_ = has_reported_end_ || report.kind != Report::kStarted;
    if (is_listening_) listener_.on_report(report);
  }
}

void MinderLine::on_exit(std::int64_t exit_code, int signal) {
  read_reports();  // the exit may be seen before the last report
  process_.reset();
  uv_timer_stop(timer_.get());
  // An exit with 0 says that nothing of the task is left.
  if (exit_code == 0 && signal == 0) {
    let_go();
  } else {
    kill_orphans();
  }
  if (std::exchange(has_reported_end_, true) || !is_listening_) return;
  listener_.on_lost();
}

void MinderLine::expect_exit_within(std::chrono::milliseconds limit) noexcept {
  const BootClock::time_point at = BootClock::now() + limit;
  if (at >= stuck_at_) return;
  stuck_at_ = at;
  run_timer_in(limit, [](uv_timer_t* timer) { owner(timer->data)->take_for_stuck(); });
}

void MinderLine::take_for_stuck() noexcept {
  if (process_) uv_process_kill(process_.get(), SIGKILL);
}

void MinderLine::kill_orphans() noexcept {
  if (reap_orphans() == 0 || orphan_checks_ >= kMaxOrphanChecks) {
    if (orphan_checks_ > 0) --ending_orphans_;
    let_go();
    return;
  }
  if (orphan_checks_++ == 0) ++ending_orphans_;
  run_timer_in(kOrphanInterval,
               [](uv_timer_t* timer) { owner(timer->data)->shared_from_this()->kill_orphans(); });
}

void MinderLine::run_timer_in(std::chrono::milliseconds delay, uv_timer_cb callback) noexcept {
  uv_update_time(loop_);
  uv_timer_start(timer_.get(), callback, static_cast<std::uint64_t>(delay.count()), 0);
}

void MinderLine::let_go() noexcept {
  timer_.reset();
  self_.reset();
}

}  // namespace pulse
