// Orphans: children that this process did not start.
//
// When a minder is killed, the kernel gives the processes of the minder's task to the next child
// subreaper above. This process is the subreaper if PR_SET_CHILD_SUBREAPER is set.
#pragma once

#include <cstddef>

namespace pulse {

// Kills and reaps the orphans; returns how many orphans were met. The children of an orphan become
// orphans when it dies, so callers repeat the call until the result is zero. The session tells an
// orphan: a task always has another session than this process, a minder never. Reaps by number
// only, so libuv's own children are untouched. For the loop's thread only: no other thread may reap
// between the listing and the judging, or a number could belong to another process.
std::size_t reap_orphans() noexcept;

}  // namespace pulse
