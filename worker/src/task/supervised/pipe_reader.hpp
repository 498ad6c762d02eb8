// Pipe reader: the reading end of one of a child's pipes.
//
// Reads at most 64 KiB per iteration of the loop, so that a child that floods one pipe delays
// neither the loop nor another child. Holds no bytes itself: while the pipe is not read, the child
// waits.
#pragma once

#include <uv.h>

#include <functional>
#include <string_view>

#include "base/loop/loop_handle.hpp"
#include "base/loop/unique_fd.hpp"

namespace pulse {

// A pipe whose ends no child inherits by itself. Returns 0 or an errno.
int open_pipe(UniqueFd& reader, UniqueFd& writer) noexcept;

class PipeReader {
 public:
  using OnBytes = std::function<void(std::string_view)>;

  PipeReader() = default;

  // Starts to watch. `on_bytes` gets the bytes that come; an empty view, once, is the end of file.
  // `on_bytes` must not destroy this pipe. Returns a libuv code.
  int open(uv_loop_t* loop, UniqueFd fd, OnBytes on_bytes);

  // Between pause() and resume() the task waits once the pipe is full.
  void pause() noexcept;
  void resume() noexcept;
  // Reads the bytes that are in the pipe now, at most as much as any pipe holds.
  void drain();
  void close() noexcept;

  [[nodiscard]] bool is_open() const noexcept { return watch_ != nullptr; }

 private:
  bool read_once();

  UniqueFd fd_;
  LoopHandle<uv_poll_t> watch_;  // closed before fd_
  OnBytes on_bytes_;
};

}  // namespace pulse
