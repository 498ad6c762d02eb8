// Tasks that are run by persistent processes: --process. See group.hpp and docs/tasks.md.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "jobs/task_queue.hpp"
#include "task/process/group.hpp"

namespace pulse {

class ProcessTasks final : public TaskQueue {
 public:
  ProcessTasks(const std::vector<ProcessCommand>& commands, const ProcessSettings& settings);
  ~ProcessTasks() override;

  std::vector<std::string> names() const;
  // As StartExecution, of a job that takes() accepts. Must outlive the started executions.
  ExecutionStart start(const HeldJob& job, const Registration& registration, TimePoint alive_as_of,
                       ExecutionCallbacks callbacks);

  bool takes(const HeldJob& job) const override;
  std::size_t busy() const override { return sum(&ProcessGroup::busy); }
  std::size_t reserved() const override { return sum(&ProcessGroup::reserved); }
  std::size_t waiting() const override { return sum(&ProcessGroup::waiting); }
  std::size_t extra() const override { return sum(&ProcessGroup::extra); }
  void slot_freed() override;
  void drain() override;

 private:
  std::size_t sum(std::size_t (ProcessGroup::*count)() const) const;

  std::unordered_map<std::string, std::unique_ptr<ProcessGroup>> groups_;
};

}  // namespace pulse
