// What clients were told, kept outside of the server: the other side of every promise.
#pragma once

#include <map>
#include <mutex>
#include <set>

#include "session.hpp"

namespace bench {

// What becomes of completed jobs at the time.
enum class Retention { kNone, kKept };

// What the tables say.
struct Stored {
  std::set<std::int64_t> live;
  std::set<std::int64_t> finished;
  std::map<std::int64_t, std::int64_t> completed_tokens;  // of finished ones that completed
  std::set<std::int64_t> orders;  // rows that were committed together with a job each
};

class Ledger {
 public:
  // Any thread may call these.
  void added(std::int64_t id);
  // The reply to these completions has not come yet: after a crash they may have happened or not.
  void asked(const Ids& ids, Retention retention);
  void accepted(std::int64_t id, std::int64_t token, Retention retention);
  void refused();

  std::int64_t adds() const { return static_cast<std::int64_t>(added_.size()); }
  std::int64_t completions() const { return static_cast<std::int64_t>(accepted_.size()); }
  std::int64_t twice() const { return twice_; }
  std::int64_t refusals() const { return refusals_; }

  // Acknowledged adds, and committed orders, whose job is nowhere.
  Ids lost(const Stored& stored) const;
  // Accepted completions of jobs that are live, or that are not kept as they were accepted.
  Ids undone(const Stored& stored) const;

 private:
  struct Completion {
    std::int64_t token;
    Retention retention;
  };
  bool is_somewhere(std::int64_t id, const Stored& stored) const;

  mutable std::mutex mutex_;
  std::set<std::int64_t> added_;
  std::set<std::int64_t> maybe_gone_;  // asked for while nothing was kept
  std::map<std::int64_t, Completion> accepted_;
  std::int64_t twice_ = 0;
  std::int64_t refusals_ = 0;
};

}  // namespace bench
