// Task queue: tasks that wait in front of the code that runs them, as handlers and processes do.
// The executor starts a job of such a task as soon as the job is held, and the queue takes the
// slots.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "jobs/held_jobs.hpp"

namespace pulse {

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

  // All are set before the first job.
  std::function<bool()> has_free_slot;
  // Since when a job of another task waits for a slot; nothing where none does.
  std::function<std::optional<TimePoint>()> slot_awaited_since;
  std::function<void()> on_more_extra;
};

}  // namespace pulse
