// What really happened to queues: the changes of the job table, decoded from the write-ahead log in
// the order of their commits. It asks nobody and sees every state that any session could see.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "session.hpp"

namespace bench {

class QueueLog {
 public:
  // Logs from now on. The server needs wal_level = logical.
  explicit QueueLog(Session* session);
  // Reads what was committed so far. concurrency: of each queue; 1 where it says nothing.
  void replay(const std::map<std::string, int>& concurrency);

  std::int64_t commits() const { return commits_; }
  std::int64_t starts() const { return starts_; }
  // Commits after which a queue ran, or had given away (open and running), more than it may.
  std::int64_t ran_too_many() const { return ran_too_many_; }
  std::int64_t gave_too_many() const { return gave_too_many_; }
  // Jobs that are live by the log; equal to the table's own count when nothing was missed.
  std::int64_t live() const { return static_cast<std::int64_t>(jobs_.size()); }
  const std::string& first_breach() const { return first_breach_; }

 private:
  enum class State { kParked, kOpen, kRunning };
  struct Job {
    std::string queue;
    State state;
  };
  struct Places {
    int open = 0;
    int running = 0;
  };

  void read(std::string_view change, const std::map<std::string, int>& concurrency);
  void judge(const std::map<std::string, int>& concurrency);
  void forget(std::int64_t id);
  void count(const Job& job, int by);

  Session* session_;
  std::map<std::int64_t, Job> jobs_;
  std::map<std::string, Places> places_;
  std::set<std::string> touched_;
  std::int64_t commits_ = 0, starts_ = 0, ran_too_many_ = 0, gave_too_many_ = 0;
  std::string first_breach_;
};

}  // namespace bench
