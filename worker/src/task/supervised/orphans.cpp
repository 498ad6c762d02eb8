#include "task/supervised/orphans.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "minder/children.hpp"

namespace pulse {

std::size_t reap_orphans() noexcept {
  std::array<pid_t, minder::kMaxChildren> children{};
  const std::size_t count = minder::list_children(children.data(), children.size());
  const pid_t own_session = getsid(0);
  const auto is_own = [own_session](pid_t child) {
    const pid_t session = getsid(child);
    return session < 0 || session == own_session;
  };
  const auto orphans_end = std::remove_if(children.begin(), children.begin() + count, is_own);
  bool is_one_alive = false;
  for (auto child = children.begin(); child != orphans_end; ++child) {
    if (minder::is_zombie(*child)) continue;
    is_one_alive = true;
    ::kill(*child, SIGKILL);
  }
  // Zombies stay while an orphan is alive, as in the minder.
  for (auto child = children.begin(); child != orphans_end && !is_one_alive; ++child) {
    waitpid(*child, nullptr, WNOHANG);
  }
  return static_cast<std::size_t>(orphans_end - children.begin());
}

}  // namespace pulse
