// The children of this process, its own and those it adopted as a child subreaper. Zombies that
// are not waited for yet are among them. Needs no C++ runtime: the minder and the worker share it.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace pulse::minder {

// Fills `pids` with at most `capacity` children and returns how many. A child that comes or goes
// meanwhile may be missed: callers repeat until there is none.
std::size_t list_children(pid_t* pids, std::size_t capacity) noexcept;

// The same by looking at every process: for kernels without CONFIG_PROC_CHILDREN.
std::size_t list_children_by_parent(pid_t* pids, std::size_t capacity) noexcept;

}  // namespace pulse::minder
