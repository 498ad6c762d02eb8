// A watcher queries less often where the queries take the server long: the queries cost a
// two-hundredth of a core, as long as each query takes less than 25 ms.
#pragma once

#include <chrono>

namespace pulse::console {

// The pause after a query that took the server `worked`: the wanted interval, or up to five seconds
// where that would cost more.
std::chrono::milliseconds pause_after(std::chrono::microseconds worked,
                                      std::chrono::milliseconds interval);

}  // namespace pulse::console
