// Takes the options of pulse-worker that the tests give, and has a handler for each task below.
// What they tell and where they wait is as in Pulse::Tasks.
#include <fcntl.h>
#include <libpq-fe.h>
#include <poll.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <pulse/worker.hpp>
#include <stdexcept>

namespace {

using namespace std::chrono_literals;
using pg_pulse::Job;
using pg_pulse::Outcome;
using pg_pulse::StopReason;

std::string root;
std::string database;

void tell(const std::string& word, const Job& job) {
  const std::string line = word + ' ' + job.task() + ' ' + std::to_string(job.id()) + ' ' +
                           std::to_string(job.token()) + ' ' + std::to_string(job.attempt()) + ' ' +
                           job.recovered().value_or("-") + ' ' + std::to_string(getpid()) + " 0\n";
  const int file = open((root + "/told").c_str(), O_WRONLY | O_APPEND);
  if (write(file, line.data(), line.size()) < 0) std::abort();
  close(file);
}

// False: it was told to stop meanwhile.
bool wait_at(const std::string& gate, const std::stop_token& stop) {
  const int pipe = open((root + "/gates/" + gate).c_str(), O_RDWR | O_NONBLOCK);
  char one = 0;
  bool has_passed = false;
  while (!has_passed && !stop.stop_requested()) {
    pollfd readable{pipe, POLLIN, 0};
    poll(&readable, 1, 10);
    has_passed = read(pipe, &one, 1) == 1;
  }
  close(pipe);
  return has_passed;
}

std::string word_for(StopReason reason) {
  switch (reason) {
    case StopReason::none: return "none";
    case StopReason::cancelled: return "cancelled";
    case StopReason::timed_out: return "timed_out";
    case StopReason::stalled: return "stalled";
    case StopReason::unreachable: return "unreachable";
    case StopReason::lost: return "lost";
    case StopReason::shutdown: return "shutdown";
  }
  return "";
}

Outcome linger(Job& job) {
  tell("began", job);
  if (wait_at("lingerers", job.stop_token())) {
    tell("ended", job);
    return Outcome::success();
  }
  tell(word_for(job.stop_reason()), job);
  return Outcome::failure("told to stop");
}

// Goes on where it was when the worker is shut down.
Outcome careful(Job& job) {
  tell("began", job);
  if (job.checkpoint()) return Outcome::success(*job.checkpoint());
  if (wait_at("lingerers", job.stop_token())) return Outcome::success();
  return Outcome::snooze(0s, R"({"kept": true})");
}

Outcome report(Job& job) {
  job.report({.fraction = 0.5, .message = "halfway", .stage = "middle", .checkpoint = "7"});
  tell("reported", job);
  wait_at("reporters", job.stop_token());
  return Outcome::success();
}

Outcome again(Job& job) {
  if (job.checkpoint()) return Outcome::success(*job.checkpoint());
  return Outcome::snooze(0s, "[1, 2]");
}

// Writes to the database, on a connection of each thread, as far as the claim holds.
Outcome sink(Job& job) {
  thread_local const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(
      PQconnectdb(database.c_str()), PQfinish);
  const std::string call =
      "SELECT app.sink(" + std::to_string(job.id()) + ", " + std::to_string(job.token()) + ")";
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection.get(), call.c_str()),
                                                             PQclear);
  if (PQresultStatus(result.get()) == PGRES_TUPLES_OK) return Outcome::success();
  return Outcome::failure(PQerrorMessage(connection.get()));
}

void add_handlers(pg_pulse::Worker& worker) {
  worker.handle("run", [](Job& job) { tell("ran", job); });
  worker.handle("quick", [](Job&) {});
  worker.handle("answer", [](Job& job) { return Outcome::success(job.payload()); });
  worker.handle("trace", [](Job& job) {
    return Outcome::success('"' + job.traceparent().value_or("none") + '"');
  });
  worker.handle("ends", [](Job& job) { return Outcome::success(job.parents().value_or("null")); });
  worker.handle("fall", [](Job&) { throw std::runtime_error("fell over"); });
  worker.handle("fling", [](Job&) { throw 42; });
  worker.handle("refuse", [](Job&) { return Outcome::final_failure("never"); });
  worker.handle("partly", [](Job& job) {
    if (job.payload() != "[1, 2]") return Outcome::success(job.payload());
    return Outcome::failure("1 of 2 refused").with_payload("[2]");
  });
  worker.handle("wait", [](Job&) { return Outcome::failure("not yet", 1h); });
  worker.handle("again", again);
  worker.handle("report", report);
  worker.handle("sink", sink);
  for (const char* task : {"linger", "limited", "stalling"}) worker.handle(task, linger);
  worker.handle("careful", careful);
  worker.handle("stubborn", [](Job& job) {
    tell("began", job);
    wait_at("never", {});
  });
}

void add_batch(pg_pulse::Worker& worker) {
  worker.handle_batch("batch", 10, [](std::span<Job> jobs) {
    std::vector<Outcome> answers;
    for (const Job& job : jobs) {
      tell("took" + std::to_string(jobs.size()), job);
      answers.push_back(job.key() ? Outcome::final_failure("odd one") : Outcome::success());
    }
    return answers;
  });
}

std::map<std::string, std::string> read_arguments(int argc, char** argv) {
  std::map<std::string, std::string> arguments;
  for (int i = 1; i + 1 < argc; i += 2) arguments[argv[i]] = argv[i + 1];
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  auto arguments = read_arguments(argc, argv);
  root = arguments["--tasks"] + "/..";
  pg_pulse::Options options;
  options.database = database = arguments["--database"];
  options.name = arguments["--name"];
  options.concurrency = std::stoi(arguments["--concurrency"]);
  options.log_level = pg_pulse::LogLevel::debug;
  options.log_format = pg_pulse::LogFormat::json;
  options.handle_signals = true;
  if (arguments.contains("--grace")) options.grace = std::stoi(arguments["--grace"]) * 1ms;
  if (arguments.contains("--stop-grace")) {
    options.stop_grace = std::stoi(arguments["--stop-grace"]) * 1ms;
  }
  if (arguments.contains("--keep"))
    options.on_stubborn = [](const Job& job) {
      tell("asked", job);
      return false;
    };
  pg_pulse::Worker worker(std::move(options));
  if (arguments.contains("--batch")) {
    add_batch(worker);
  } else {
    add_handlers(worker);
  }
  return worker.run();
}
