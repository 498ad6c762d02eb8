// The task `act` as a handler in C++: see ../../README.md. Values stay the text that they are in
// the payload, so that no digit is lost.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <pulse/worker.hpp>
#include <thread>

namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using pg_pulse::Job;
using pg_pulse::Outcome;
using Clock = std::chrono::steady_clock;

struct Step {
  std::string kind;
  std::string value;  // JSON text
};

std::string text_of(const std::string& value) { return json::parse(value).get<std::string>(); }

// The position behind the value that begins at `from`.
std::size_t end_of_value(const std::string& text, std::size_t from) {
  int depth = 0;
  bool is_quoted = false;
  for (std::size_t at = from; at < text.size(); ++at) {
    const char c = text[at];
    if (is_quoted) {
      if (c == '\\') ++at;
      if (c == '"') is_quoted = false;
    } else if (c == '"') {
      is_quoted = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (depth > 0 && (c == ']' || c == '}')) {
      --depth;
    } else if (depth == 0 && (c == ',' || c == ']' || c == '}')) {
      return at;
    }
  }
  return text.size();
}

// [{"kind": value}, …]
std::vector<Step> steps_of(const std::string& text) {
  std::vector<Step> steps;
  std::size_t at = 0;
  while ((at = text.find('{', at)) != std::string::npos) {
    const std::size_t name = text.find('"', at) + 1;
    const std::size_t colon = text.find(':', name);
    const std::size_t begin = text.find_first_not_of(" \n\t", colon + 1);
    const std::size_t end = end_of_value(text, begin);
    steps.push_back(
        {text.substr(name, text.find('"', name) - name), text.substr(begin, end - begin)});
    at = end;
  }
  return steps;
}

std::string file_name() { return std::getenv("PULSE_FILE"); }

void write_line(const Job& job, const std::string& value) {
  const std::string line = "{\"job\": \"" + std::to_string(job.id()) +
                           "\", \"attempt\": " + std::to_string(job.attempt()) +
                           ", \"checkpoint\": " + job.checkpoint().value_or("null") +
                           ", \"wrote\": " + value + "}\n";
  const int file = open(file_name().c_str(), O_WRONLY | O_APPEND);
  if (write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  close(file);
}

// False: this is not the first run of the job.
bool is_first_run(const Job& job) {
  const std::string name = file_name() + ".ran." + std::to_string(job.id());
  const int file = open(name.c_str(), O_CREAT | O_EXCL, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

struct Told : std::runtime_error {
  Told() : std::runtime_error("told to end") {}
};

template <class Condition>
void wait_until(const Job& job, Clock::duration limit, Condition is_over) {
  const auto deadline = Clock::now() + limit;
  while (!is_over() && Clock::now() < deadline) {
    if (job.stop_requested()) throw Told();
    std::this_thread::sleep_for(10ms);
  }
  // Also of work that was told while it slept, and whose gate is open by now.
  if (job.stop_requested()) throw Told();
}

std::chrono::milliseconds seconds(const std::string& value) {
  return std::chrono::milliseconds(std::lround(std::stod(value) * 1000));
}

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16)));
  }
  return bytes;
}

void add(const std::string& payload) {
  std::string quoted;
  for (const char c : payload) quoted += c == '\'' ? "''" : std::string(1, c);
  FILE* psql = popen("psql -XAtq -v ON_ERROR_STOP=1", "w");
  fprintf(psql, "SELECT FROM pulse.add_job('act', '%s')\n;\n", quoted.c_str());
  if (pclose(psql) != 0) throw std::runtime_error("psql failed");
}

// The outcome, once a step has decided it.
std::optional<Outcome> run(Job& job, const std::string& steps, std::string& result);

std::optional<Outcome> take(Job& job, const Step& step, std::string& result) {
  const auto& [kind, value] = step;
  if (kind == "write") write_line(job, value);
  if (kind == "wait") wait_until(job, seconds(value), [] { return false; });
  if (kind == "until") {
    const std::string gate = file_name() + "." + text_of(value);
    wait_until(job, 120s, [&gate] { return access(gate.c_str(), F_OK) == 0; });
  }
  if (kind == "spin") {
    for (const auto end = Clock::now() + seconds(value); Clock::now() < end;) continue;
  }
  if (kind == "progress") job.report({.fraction = std::stod(value)});
  if (kind == "checkpoint") job.report({.checkpoint = value});
  if (kind == "result") result = value;
  if (kind == "fail") return Outcome::failure(text_of(value));
  if (kind == "fail_for_good") return Outcome::final_failure(text_of(value));
  if (kind == "garble") return Outcome::failure(bytes_of(text_of(value)));
  if (kind == "rest") return Outcome::failure("not all was done").with_payload(value);
  if (kind == "snooze") return Outcome::snooze(seconds(value));
  if (kind == "add") add(value);
  if (kind == "exit") std::_Exit(std::stoi(value));
  if (kind == "signal") raise(text_of(value) == "KILL" ? SIGKILL : SIGTERM);
  if (kind == "once" && is_first_run(job)) return run(job, value, result);
  return std::nullopt;
}

std::optional<Outcome> run(Job& job, const std::string& steps, std::string& result) {
  for (const Step& step : steps_of(steps)) {
    if (auto outcome = take(job, step, result)) return outcome;
  }
  return std::nullopt;
}

}  // namespace

int main() {
  pg_pulse::Worker worker({.name = "kit", .concurrency = 2, .grace = 2s, .handle_signals = true});
  worker.handle("act", [](Job& job) {
    std::string result;
    if (auto outcome = run(job, job.payload(), result)) return *outcome;
    return result.empty() ? Outcome::success() : Outcome::success(result);
  });
  return worker.run();
}
