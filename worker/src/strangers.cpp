#include "strangers.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "../minder/children.hpp"

namespace pulse {

std::size_t reap_strangers() noexcept {
  constexpr std::size_t kBatch = 1024;
  std::array<pid_t, kBatch> children{};
  const std::size_t count = minder::list_children(children.data(), children.size());
  const pid_t own_session = getsid(0);
  std::size_t seen = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const pid_t child = children[i];
    const pid_t session = getsid(child);
    if (session < 0 || session == own_session) continue;
    ++seen;
    ::kill(child, SIGKILL);
    // One that is not reaped now is seen again by the next call.
    waitpid(child, nullptr, WNOHANG);
  }
  return seen;
}

}  // namespace pulse
