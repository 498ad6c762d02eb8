// Where no background worker and no pulse-worker sweeps, the server answers claims and heartbeats
// with a notice that a sweep is due. A worker of the API has no session for a sweep, so pulse serve
// sweeps within the worker's request.
#pragma once

#include "base/postgres/sqlstate.hpp"
#include "database/database.hpp"

namespace pulse::console {

class SweepNotice {
 public:
  explicit SweepNotice(Database& database) : database_(database) {
    database_.on_notice = [this](const SqlError& notice) {
      if (notice.sqlstate == sqlstate::kSweepIsDue) is_due_ = true;
    };
  }
  ~SweepNotice() { database_.on_notice = nullptr; }
  SweepNotice(const SweepNotice&) = delete;
  SweepNotice& operator=(const SweepNotice&) = delete;

  void sweep_if_due() const {
    if (!is_due_) return;
    is_due_ = false;
    database_.query("SELECT FROM pulse.sweep()");
  }

  // For answers with claimed jobs, which must reach the client even if the sweep fails: the server
  // gives the notice again. Afterwards the database may be out of reach.
  void sweep_before_answer() const {
    try {
      sweep_if_due();
    } catch (const Refused&) {
    } catch (const Unreachable&) {
    }
  }

 private:
  Database& database_;
  mutable bool is_due_ = false;
};

}  // namespace pulse::console
