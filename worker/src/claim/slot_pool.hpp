// Slot pool: the slots of a process that several databases share: who may claim for a free slot,
// and which job takes a slot first.
//
// A slot is promised to one database before the claim for it is sent. Of the databases whose last
// answer had work, the database with the fewest jobs so far comes first, and a database that was
// away or idle catches up by a few jobs only. A database that does not answer loses the promise
// after a second; from then until an answer in time it is promised no more than its part of the
// slots. Jobs that come later wait here for a slot.
//
// Invariants (only the loop's thread reads and writes):
// - Jobs without an end and promises together are no more than the slots and the jobs held ahead,
//   but for jobs of a claim that was answered too late.
// - `promised` of an entry is set from the sending of a claim until the answer or the deadline.
// - `served` counts jobs; no entry lags behind the largest count by more than kMaxLag.
// - `has_passed` is set while the database could not use what it might have claimed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "claim/demand.hpp"
#include "jobs/start_pace.hpp"
#include "jobs/task_queue.hpp"

namespace pulse {

// What one database has of the slots, and wants.
class SlotUser {
 public:
  virtual ~SlotUser() = default;

  // Slots that tasks of this database have, without the tasks of the queue.
  virtual std::size_t slots_taken() const = 0;
  // Jobs without an end: those that the queue has, those that wait for a slot, and all together.
  virtual std::size_t queued() const = 0;
  virtual std::size_t waiting() const = 0;
  virtual std::size_t held() const = 0;
  virtual std::size_t held_bytes() const = 0;
  // Since when the first of the jobs that wait for a slot does so; nothing while a slot is free.
  virtual std::optional<TimePoint> slot_awaited_since() const = 0;
  // When the first of these jobs had arrived.
  virtual std::optional<TimePoint> first_arrival() const = 0;
  // Had work by its last answer, and could send a claim now.
  virtual bool wants_jobs() const = 0;

  virtual void fill_slots() = 0;
  // A slot is free, perhaps: claims or waits, if one of both is due.
  virtual void claim_or_wait() = 0;
};

class SlotPool {
 public:
  static constexpr Duration kPromiseDeadline = std::chrono::seconds(1);
  static constexpr std::uint64_t kMaxLag = 16;
  // A claim asks for at least so many jobs when they are to be held ahead: a claim for each would
  // cost the server more than the jobs.
  static constexpr std::size_t kLeastAhead = 8;

  SlotPool(std::size_t slots, Timers& timers);
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  // Tasks that wait in a queue, of all databases. Set before the first user; outlives this.
  void set_queue(TaskQueue& queue);
  // `user` calls leave() before its end.
  void join(SlotUser& user);
  void leave(SlotUser& user);

  std::size_t slots() const { return slots_; }
  // For the starts of all users.
  StartPace& pace() { return pace_; }

  // Of all other users: what they have and what they are promised.
  struct Others {
    std::size_t slots_taken = 0;
    std::size_t queued = 0;
    std::size_t waiting = 0;
    std::size_t held = 0;
    std::size_t promised_starts = 0;
    std::size_t promised = 0;
  };
  Others beside(const SlotUser& user) const;
  // Of `share`, the slots that no other user is promised.
  std::size_t unpromised(const SlotUser& user, const TaskShare& share) const;
  // Bytes that a claim must leave alone under a bound for all users: the bytes held, and the parts
  // of the rest for claims of the other users.
  std::size_t bytes_taken(std::size_t max_bytes) const;

  // What of `whole`, the demand of all users together, `user` may claim now.
  Demand part_of(const SlotUser& user, const Demand& whole) const;
  // A claim for `demand` is sent; `tasks`: of these tasks only.
  void promise(SlotUser& user, const Demand& demand,
               const std::optional<std::vector<std::string>>& tasks);
  // The claim has ended: with an answer of so many jobs, or without any.
  void end_promise(SlotUser& user, std::size_t jobs);
  // `user` cannot use its part now: the others may.
  void pass(SlotUser& user);
  // A slot has come free: starts jobs that wait, and asks the databases for claims, once in an
  // iteration of the loop.
  void offer_soon() { offering_.start_soon(); }

 private:
  struct Entry {
    Entry(SlotUser& user, Timers& timers, std::function<void()> on_late)
        : user(&user), deadline(timers, std::move(on_late)) {}

    SlotUser* user;
    Demand promised;
    std::optional<std::vector<std::string>> tasks;
    bool is_late = false;
    bool has_passed = false;
    std::uint64_t served = 0;
    Timer deadline;
  };

  Entry& entry_of(const SlotUser& user);
  const Entry& entry_of(const SlotUser& user) const;
  std::size_t own_part() const;
  std::size_t allotment(const Entry& own, std::size_t jobs) const;
  void take_lateness(const SlotUser& user);
  void offer();
  void fill_slots();

  const std::size_t slots_;
  Timers& timers_;
  Timer offering_;
  TaskQueue* queue_ = nullptr;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::uint64_t most_served_ = 0;
  StartPace pace_;
};

}  // namespace pulse
