// Identity of this process, as precisely as the machine can say: enough for another worker on the
// same machine to tell whether this process is gone.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace pulse {

struct Identity {
  std::string hostname;
  std::string boot_id;        // a new id at every start of the kernel
  std::string pid_namespace;  // pids mean something only within this namespace
  pid_t pid = 0;
  std::string process_start;  // clock ticks since boot: tells a reused pid from the same process
};

std::string read_hostname();

Identity read_identity();

// When the process started, empty if no process has this pid.
std::string read_process_start(pid_t pid);

// Whether the process of this pid that started then has ended. Only of this pid namespace; a
// process that cannot be seen, as another user's, counts as alive.
bool is_process_gone(std::int64_t pid, const std::string& process_start);

// Whether a minder of that process is still there: a task of the process may run yet. Also where
// this process cannot see minders.
bool has_minders(std::int64_t pid, const std::string& process_start);

// The info argument of register_worker, and of serve_tasks of a worker that drains. `databases`: so
// many databases share the slots.
std::string identity_json(const Identity& identity, int slots, bool is_draining = false,
                          int databases = 1);

}  // namespace pulse
