// How often a watcher looks: where its looks take the server long, more seldom, so that whoever
// watches millions of jobs costs the server a two-hundredth of a core.
#pragma once

#include <chrono>

namespace pulse::console {

// From a look that the server has worked for so long to the next one: the interval that is wanted,
// and up to five seconds where that is too often.
std::chrono::milliseconds pause_after(std::chrono::microseconds worked,
                                      std::chrono::milliseconds interval);

}  // namespace pulse::console
