// Task queue: tasks that wait in front of the code that runs them, as handlers and processes do.
// The executor starts a job of such a task as soon as it is held, and the queue takes the slots.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jobs/held_jobs.hpp"

namespace pulse {

// Tasks that share slots.
struct TaskShare {
  std::vector<std::string> tasks;
  std::size_t free = 0;  // slots
};

class TaskQueue {
 public:
  virtual ~TaskQueue() = default;

  // Whether the job is of a task that waits here.
  virtual bool takes(const HeldJob& job) const = 0;
  // Slots in use.
  virtual std::size_t busy() const = 0;
  // Slots that queued jobs wait for, and that no later job may take.
  virtual std::size_t reserved() const = 0;
  // Jobs that wait for a process or a thread to run them.
  virtual std::size_t waiting() const = 0;
  // How many jobs beyond one for each slot can be run now.
  virtual std::size_t extra() const = 0;
  // A slot has come free.
  virtual void slot_freed() = 0;
  // Nothing more will come once the present jobs have ended.
  virtual void drain() = 0;

  // Slots of the tasks' own, beside those of --concurrency.
  virtual bool has_own_slots() const { return false; }
  virtual std::size_t own_slots() const { return 0; }
  // Taken, or waited for.
  virtual std::size_t own_slots_in_use() const { return 0; }
  // The tasks whose slots are limited besides, by the slots that they share.
  virtual std::vector<TaskShare> shares() const { return {}; }

  // All are set before the first job.
  std::function<bool()> has_free_slot;
  // Since when a job of another task waits for a slot; nothing where none does.
  std::function<std::optional<TimePoint>()> slot_awaited_since;
  std::function<void()> on_more_extra;
};

}  // namespace pulse
