// The workers of several databases on one fake clock, with the test as their servers and machine.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fake_clock.hpp"
#include "fake_connection.hpp"
#include "log_capture.hpp"
#include "server_answers.hpp"
#include "worker_group.hpp"

namespace pulse {

using namespace std::chrono_literals;

class ManyBench : public ::testing::Test {
 protected:
  struct RunningTask {
    ExecutionCallbacks callbacks;
    bool exists = true;
  };
  class TaskDouble final : public Execution {
   public:
    explicit TaskDouble(std::shared_ptr<RunningTask> task) : task_(std::move(task)) {}
    ~TaskDouble() override { task_->exists = false; }
    void ping(TimePoint) override {}
    void terminate(Duration) override {}

   private:
    std::shared_ptr<RunningTask> task_;
  };
  // A database as its server: what waits there, and what its connections say.
  struct Server {
    std::string identity;
    std::string refusal;       // SQLSTATE of registrations; empty: accepted
    std::int64_t backlog = 0;  // ready jobs
    std::int64_t next_job = 1;
    bool is_silent = false;  // answers nothing
    std::int64_t given = 0;
    int registrations = 0;
    FakeConnection claim, finish, heartbeat;
  };
  class OneWorker final : public WorkerGroup::Member {
   public:
    OneWorker(ManyBench& bench, const std::string& name) : log_(bench.capture_.log(), name) {
      const std::size_t number = std::stoul(name.substr(1));
      Config config = bench.config_;
      config.name = "bench";
      config.database_name = name;
      Server& server = *bench.servers_[number];
      worker_ = std::make_unique<Worker>(
          config, "{}", 5s, Connections{server.claim, server.finish, server.heartbeat},
          [&bench, number](const HeldJob& job, const Registration&, TimePoint,
                           ExecutionCallbacks callbacks) {
            return bench.start_task(number, job, std::move(callbacks));
          },
          bench.timers_, [] { return 0.5; }, log_);
      worker_->share_slots(*bench.pool_, nullptr);
    }
    Worker& worker() override { return *worker_; }

   private:
    Log log_;
    std::unique_ptr<Worker> worker_;
  };

  void given_databases(std::size_t count, int slots, bool once = false) {
    config_.concurrency = slots;
    config_.once = once;
    config_.prefetch = config_.prefetch.value_or(0);
    pool_.emplace(static_cast<std::size_t>(slots), timers_);
    for (std::size_t i = 0; i < count; ++i) {
      servers_.push_back(std::make_unique<Server>());
      servers_.back()->identity = "7/" + std::to_string(i);
    }
    group_ = std::make_unique<WorkerGroup>(
        kind_, once,
        [this](const NamedDatabase& database) {
          return std::make_unique<OneWorker>(*this, database.name);
        },
        timers_, capture_.log());
    group_->on_finished = [this](ExitCode code) { exit_code_ = code; };
    std::vector<NamedDatabase> databases;
    for (std::size_t i = 0; i < count; ++i) databases.push_back(database(i));
    group_->serve_databases(databases);
  }
  // The address of a database is no matter of its name.
  static NamedDatabase database(std::size_t number, const std::string& address = "") {
    return {"d" + std::to_string(number), std::get<0>(ConnectOptions::read(address, "bench"))};
  }
  ~ManyBench() override { group_.reset(); }

  void start() {
    group_->serve({"mail"});
    group_->start();
    run();
  }

  ExecutionStart start_task(std::size_t number, const HeldJob& job, ExecutionCallbacks callbacks) {
    EXPECT_EQ(job.job.input.database, "d" + std::to_string(number));
    auto task = std::make_shared<RunningTask>();
    task->callbacks = std::move(callbacks);
    tasks_.emplace_back(number, task);
    most_running_ = std::max(most_running_, running());
    return {std::make_unique<TaskDouble>(task), false, {}};
  }

  std::size_t running() {
    std::erase_if(tasks_, [](const auto& each) { return !each.second->exists; });
    return tasks_.size();
  }
  std::size_t running_of(std::size_t number) {
    running();
    return static_cast<std::size_t>(std::count_if(
        tasks_.begin(), tasks_.end(), [&](const auto& each) { return each.first == number; }));
  }
  void end_task(std::size_t place) {
    const auto task = tasks_.at(place).second;
    ExecutionEnd end;
    end.kind = ExecutionEnd::Kind::succeeded;
    const auto on_end = task->callbacks.on_end;
    on_end(end);
    running();
  }
  // Ends a task of the database.
  void end_task_of(std::size_t number) {
    running();
    for (std::size_t place = 0; place < tasks_.size(); ++place) {
      if (tasks_[place].first == number) return end_task(place);
    }
    FAIL() << "no task of d" << number;
  }

  static std::vector<std::pair<std::int64_t, std::string>> accepted(const std::string& ids) {
    std::vector<std::pair<std::int64_t, std::string>> answers;
    std::string digits;
    for (const char character : ids) {
      if (character >= '0' && character <= '9') digits += character;
      if (character != ',' && character != '}') continue;
      if (!digits.empty()) answers.emplace_back(std::stoll(digits), "accepted");
      digits.clear();
    }
    return answers;
  }

  QueryResult jobs_for(Server& server, std::size_t number, std::int64_t most) {
    std::vector<GivenJob> jobs;
    while (server.backlog > 0 && static_cast<std::int64_t>(jobs.size()) < most) {
      jobs.push_back({.id = server.next_job, .token = 1000 + server.next_job});
      ++server.next_job;
      --server.backlog;
      ++server.given;
      given_.push_back(number);
    }
    return claimed(jobs);
  }

  Reply reply_of(Server& server, std::size_t number, const std::string& name,
                 const Params& params) {
    if (name == "database_identity") return QueryResult({"identity"}, {server.identity});
    if (name == "register_worker") {
      if (!server.refusal.empty()) return SqlError{server.refusal, "no", "", "", ""};
      ++server.registrations;
      return registered(7);
    }
    if (name == "handler_tasks") return handler_tasks();
    if (name == "heartbeat") return beat();
    if (name == "claim") return jobs_for(server, number, std::stoll(*params.at(1)));
    if (name == "complete_many" || name == "release") return outcomes(accepted(*params.at(0)));
    return done();
  }

  // Answers what a connection waits for; a wait for jobs goes on unless there are any.
  bool answer(Server& server, std::size_t number, FakeConnection& connection) {
    if (server.is_silent) return false;
    if (connection.is_opening()) {
      connection.accept();
      return true;
    }
    const std::string name = connection.running();
    if (name.empty() || (name == "wait_for_job" && server.backlog == 0)) return false;
    if (connection.with_claim().empty()) {
      connection.answer(reply_of(server, number, name, connection.params()));
    } else {
      connection.answer_all(
          {reply_of(server, number, connection.with_claim(), connection.with_claim_params()),
           reply_of(server, number, name, connection.params())});
    }
    return true;
  }

  // Until nothing moves but waits and tasks; the servers answer in any order.
  void run() {
    for (bool moves = true; moves;) {
      settle(timers_);
      moves = false;
      std::vector<std::size_t> order(servers_.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random_);
      for (const std::size_t number : order) {
        Server& server = *servers_[number];
        for (FakeConnection* each : {&server.heartbeat, &server.claim, &server.finish}) {
          moves = answer(server, number, *each) || moves;
        }
      }
    }
  }
  void pass_time(std::chrono::nanoseconds by) {
    const TimePoint end = clock_.now() + by;
    while (timers_.next_due() && *timers_.next_due() <= end) {
      clock_.move_to(std::max(clock_.now(), *timers_.next_due()));
      run();
    }
    clock_.move_to(end);
    run();
  }
  void wake(std::size_t number, std::int64_t jobs) {
    servers_[number]->backlog += jobs;
    run();
  }
  void end_random_task() {
    running();
    std::uniform_int_distribution<std::size_t> any(0, tasks_.size() - 1);
    end_task(any(random_));
  }

  FakeClock clock_;
  Timers timers_{clock_};
  LogCapture capture_{LogFormat::text, LogLevel::info};
  Config config_;
  WorkerGroup::Kind kind_ = WorkerGroup::Kind::several;
  std::mt19937 random_{51};
  std::optional<SlotPool> pool_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::pair<std::size_t, std::shared_ptr<RunningTask>>> tasks_;
  std::vector<std::size_t> given_;  // the database of each job, in the order of claims
  std::size_t most_running_ = 0;
  std::optional<ExitCode> exit_code_;
  std::unique_ptr<WorkerGroup> group_;
};

}  // namespace pulse
