// A running task, as far as the decisions about it need to know. The interface exists for the
// tests' double; task_starter.cpp makes the real ones.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "clock.hpp"
#include "held_jobs.hpp"
#include "registration.hpp"
#include "task_process.hpp"

namespace pulse {

class Task {
 public:
  virtual ~Task() = default;
  // Its minder may let it run until alive_as_of + the silence limit.
  virtual void ping(TimePoint alive_as_of) = 0;
  virtual void terminate(Duration grace) = 0;
};

struct TaskStart {
  std::unique_ptr<Task> task;  // empty: it did not start
  // Neither the job nor its task is at fault: the job goes back.
  bool is_transient = false;
  std::string error;
};

using StartTask = std::function<TaskStart(const HeldJob& job, const Registration& registration,
                                          TimePoint alive_as_of, TaskCallbacks callbacks)>;

}  // namespace pulse
