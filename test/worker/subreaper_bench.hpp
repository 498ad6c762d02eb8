// A process that gets the orphans below it, as the worker does, beside children of its loop.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "task_bench.hpp"

namespace pulse {

class SubreaperBench : public TaskBench {
 protected:
  void SetUp() override {
    TaskBench::SetUp();
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
  }
  void TearDown() override {
    TaskBench::TearDown();
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  }

  // A child of the loop that exits with `code`; its end is told to ended_.
  void given_child(int code) {
    const std::string script = "exit " + std::to_string(code);
    std::array<char*, 4> arguments{const_cast<char*>("sh"), const_cast<char*>("-c"),
                                   const_cast<char*>(script.c_str()), nullptr};
    uv_process_options_t options{};
    options.file = "/bin/sh";
    options.args = arguments.data();
    options.exit_cb = [](uv_process_t* process, std::int64_t exit_code, int) {
      static_cast<SubreaperBench*>(process->data)->ended_[process->pid] = exit_code;
      uv_close(reinterpret_cast<uv_handle_t*>(process), nullptr);
    };
    children_.push_back(std::make_unique<uv_process_t>());
    children_.back()->data = this;
    ASSERT_EQ(uv_spawn(loop_.uv(), children_.back().get(), &options), 0);
    expected_[children_.back()->pid] = code;
  }

  // Ended, and not yet looked at by the loop.
  void wait_for_ends_of_children() {
    for (const auto& [pid, code] : expected_) {
      siginfo_t ended{};
      ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
    }
  }

  std::vector<std::unique_ptr<uv_process_t>> children_;
  std::map<pid_t, std::int64_t> expected_;
  std::map<pid_t, std::int64_t> ended_;
};

}  // namespace pulse
