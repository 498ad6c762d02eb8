// Children of this process: started by this process, or adopted as a child subreaper. Zombies that
// no code has waited for yet are among the children. Needs no C++ runtime: the minder and the
// worker share these functions.
#pragma once

#include <sys/types.h>

#include <stddef.h>

namespace pulse::minder {

// The most children that one reading takes.
constexpr size_t kMaxChildren = 8192;

// Fills `pids` with at most `capacity` children and returns how many. A child that comes or goes
// meanwhile may be missed: callers repeat until there is none.
size_t list_children(pid_t* pids, size_t capacity) noexcept;

// The same by reading of every process: for kernels without CONFIG_PROC_CHILDREN.
size_t list_children_by_parent(pid_t* pids, size_t capacity) noexcept;

// Whether a child has ended and has not been reaped yet.
bool is_zombie(pid_t child) noexcept;

// Sends SIGKILL to each child that lives; returns how many there were.
size_t kill_living_children() noexcept;

}  // namespace pulse::minder
