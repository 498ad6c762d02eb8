// The queues of persistent processes and of programs, as the one queue that the worker knows.
#pragma once

#include "task/process/tasks.hpp"
#include "task/program/tasks.hpp"

namespace pulse {

class TaskQueues final : public TaskQueue {
 public:
  // Both outlive this.
  TaskQueues(ProcessTasks& processes, ProgramTasks& programs);

  bool takes(const HeldJob& job) const override {
    return processes_.takes(job) || programs_.takes(job);
  }
  std::size_t busy() const override { return processes_.busy() + programs_.busy(); }
  std::size_t reserved() const override { return processes_.reserved() + programs_.reserved(); }
  std::size_t waiting() const override { return processes_.waiting() + programs_.waiting(); }
  std::size_t extra() const override { return processes_.extra() + programs_.extra(); }
  void slot_freed() override;
  void drain() override;
  bool has_own_slots() const override { return programs_.has_own_slots(); }
  std::size_t own_slots() const override { return programs_.own_slots(); }
  std::size_t own_slots_in_use() const override { return programs_.own_slots_in_use(); }
  std::vector<TaskShare> shares() const override { return programs_.shares(); }

 private:
  ProcessTasks& processes_;
  ProgramTasks& programs_;
};

}  // namespace pulse
