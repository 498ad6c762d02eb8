#include "task/queues.hpp"

#include <initializer_list>

namespace pulse {

TaskQueues::TaskQueues(ProcessTasks& processes, ProgramTasks& programs)
    : processes_(processes), programs_(programs) {
  for (TaskQueue* queue : std::initializer_list<TaskQueue*>{&processes_, &programs_}) {
    queue->has_free_slot = [this] { return has_free_slot(); };
    queue->slot_awaited_since = [this] { return slot_awaited_since(); };
    queue->on_more_extra = [this] { on_more_extra(); };
  }
  // Before the first worker, programs start, and no job waits.
  has_free_slot = [] { return true; };
  slot_awaited_since = [] { return std::nullopt; };
  on_more_extra = [] {};
}

void TaskQueues::slot_freed() {
  processes_.slot_freed();
  programs_.slot_freed();
}

void TaskQueues::drain() {
  processes_.drain();
  programs_.drain();
}

}  // namespace pulse
