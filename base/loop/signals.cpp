#include "base/loop/signals.hpp"

namespace pulse {

Signals::~Signals() {
  for (auto& watch : watches_) {
    // Freed when libuv lets go of the handle.
    uv_close(reinterpret_cast<uv_handle_t*>(&watch.release()->handle), [](uv_handle_t* handle) {
      const std::unique_ptr<Watch> owned(static_cast<Watch*>(handle->data));
    });
  }
}

void Signals::on(int number, std::function<void()> callback) {
  auto watch = std::make_unique<Watch>();
  watch->callback = std::move(callback);
  uv_signal_init(loop_.uv(), &watch->handle);
  watch->handle.data = watch.get();
  uv_signal_start(
      &watch->handle,
      [](uv_signal_t* handle, int) { static_cast<Watch*>(handle->data)->callback(); }, number);
  watches_.push_back(std::move(watch));
}

}  // namespace pulse
