// Loop handles: owners of libuv handles. A handle must live until the close callback; the owner
// need not.
#pragma once

#include <uv.h>

#include <memory>

namespace pulse {

struct LoopHandleCloser {
  template <typename Handle>
  void operator()(Handle* handle) const noexcept {
    uv_close(reinterpret_cast<uv_handle_t*>(handle), [](uv_handle_t* closed) {
      const std::unique_ptr<Handle> owned(reinterpret_cast<Handle*>(closed));
    });
  }
};

// Made of an initialised handle: `own_handle(std::move(handle))` after uv_…_init succeeded. No
// callback comes after the owner is gone.
template <typename Handle>
using LoopHandle = std::unique_ptr<Handle, LoopHandleCloser>;

template <typename Handle>
LoopHandle<Handle> own_handle(std::unique_ptr<Handle> initialised) noexcept {
  return LoopHandle<Handle>(initialised.release());
}

}  // namespace pulse
