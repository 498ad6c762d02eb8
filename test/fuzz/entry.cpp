// What libFuzzer calls, for the target that PULSE_FUZZ_TARGET names.
#include <cstddef>
#include <cstdint>

#include "target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pulse::fuzz::PULSE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
