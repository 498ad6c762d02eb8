#include "task/supervised/zombies.hpp"

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <utility>

namespace pulse {
namespace {

// Until the loop has heard of a child whose signal is under way, or zombies have no use any more.
constexpr std::chrono::milliseconds kPause{20};

// The first child that has ended and has not been reaped; 0 when there is none.
pid_t first_zombie() noexcept {
  siginfo_t ended{};
  if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) return 0;
  return ended.si_pid;
}

struct Search {
  pid_t child;
  bool is_found;
};

void compare(uv_handle_t* handle, void* data) noexcept {
  auto& search = *static_cast<Search*>(data);
  if (handle->type != UV_PROCESS || uv_is_active(handle) == 0) return;
  if (uv_process_get_pid(reinterpret_cast<uv_process_t*>(handle)) == search.child) {
    search.is_found = true;
  }
}

// Whether a handle of the loop will be told of the child's end.
bool is_awaited(uv_loop_t* loop, pid_t child) noexcept {
  Search search{child, false};
  uv_walk(loop, compare, &search);
  return search.is_found;
}

}  // namespace

// Children that ended before the listening began are reaped, too.
Zombies::Zombies(EventLoop& loop, std::function<bool()> must_stay)
    : loop_(loop),
      must_stay_(std::move(must_stay)),
      ended_(loop.timers(), [this] { reap(); }),
      signals_(loop) {
  signals_.on(SIGCHLD, [this] { ended_.start_soon(); });
  ended_.start_soon();
}

void Zombies::reap() {
  if (must_stay_()) return ended_.start_in(kPause);
  while (const pid_t child = first_zombie()) {
    // The awaited zombie hides the zombies behind, for a moment.
    if (is_awaited(loop_.uv(), child)) return ended_.start_in(kPause);
    waitpid(child, nullptr, WNOHANG);
  }
}

}  // namespace pulse
