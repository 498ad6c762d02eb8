// Orphans: children of this process that it did not start.
//
// When a minder is killed, the kernel gives its task's processes to the next child subreaper above,
// which is this process if it set PR_SET_CHILD_SUBREAPER.
#pragma once

#include <cstddef>

namespace pulse {

// Kills and reaps the orphans; returns how many it met. The children of an orphan come here as it
// dies, so callers repeat this until it meets none. An orphan is told by its session: a task always
// has another session than this process, a minder never. Reaps by number only, so libuv's own
// children are untouched. For the loop's thread only: no other thread may reap between the listing
// and the judging, or a number could belong to another process.
std::size_t reap_orphans() noexcept;

}  // namespace pulse
