// Children of this process that it did not start.
//
// When a minder is killed, the kernel gives its task's processes to the next child subreaper above,
// which is this process if it set PR_SET_CHILD_SUBREAPER.
#pragma once

#include <cstddef>

namespace pulse {

// Kills and reaps the strangers; returns how many it met. The children of those come here as they
// die, so it is to be repeated until it meets none. Strangers are told by their session: a task
// always has another one than this process, a minder never. Reaps by number only, so libuv's own
// children are untouched. For the thread of the loop: one that ended between being listed and being
// judged must still have its number, so nobody may reap meanwhile.
std::size_t reap_orphans() noexcept;

}  // namespace pulse
