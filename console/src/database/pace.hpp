// A watcher looks more seldom where its looks take the server long: they cost a two-hundredth of a
// core, as long as each takes less than 25 ms.
#pragma once

#include <chrono>

namespace pulse::console {

// From a look that the server has worked for so long to the next one: the interval that is wanted,
// and up to five seconds where that is too often.
std::chrono::milliseconds pause_after(std::chrono::microseconds worked,
                                      std::chrono::milliseconds interval);

}  // namespace pulse::console
