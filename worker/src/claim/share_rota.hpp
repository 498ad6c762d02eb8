// Share rota: which tasks the next claim is for, where tasks do not share all slots. A claim for
// several shares asks for no more jobs than each share has free slots, so that no job waits here
// for a slot while another worker has a free one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "claim/demand.hpp"
#include "jobs/task_queue.hpp"

namespace pulse {

// The claims are first for all shares that have a free slot, then for each of these shares alone,
// and again. So an idle worker claims once before it waits, and a busy worker fills each share.
class ShareRota {
 public:
  struct Terms {
    Demand demand;
    std::optional<std::vector<std::string>> tasks;  // absent: as without shares
    bool is_for_all = true;                         // an empty answer means that nothing is ready
    std::size_t shares = 0;                         // of the claim
  };

  // Where no more than one share exists, `whole` is asked for.
  Terms next(const Demand& whole, const std::vector<TaskShare>& shares) const;
  void take_answer(const Terms& asked, std::size_t jobs);
  // Whether a share has come free that the last claim for all did not ask for.
  bool has_more(const std::vector<TaskShare>& shares) const;

 private:
  std::size_t next_ = 0;       // 0: all; i: the i-th free share alone
  std::size_t asked_for_ = 0;  // shares of the last claim for all
};

}  // namespace pulse
