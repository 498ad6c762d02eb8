#include "meter.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace bench {
namespace {

struct Process {
  int parent = 0;
  long reaped_ticks = 0;  // of its children that ended
};

Process process_of(const std::string& directory) {
  std::ifstream file(directory + "/stat");
  std::string line;
  std::getline(file, line);
  Process process;
  std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return process;
  long user = 0, system = 0;
  std::sscanf(line.c_str() + name_end + 1,
              " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %ld %ld", &process.parent, &user,
              &system);
  process.reaped_ticks = user + system;
  return process;
}

// To the nanosecond: a session that beats each two seconds uses less than a tick in a minute.
double own_seconds(const std::string& directory) {
  std::ifstream file(directory + "/schedstat");
  double nanoseconds = 0;
  file >> nanoseconds;
  return nanoseconds / 1e9;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

Meter::Meter(Session* session)
    : session_(session),
      postmaster_(process_of("/proc/" + session->text("SELECT pg_backend_pid()::text")).parent) {}

Reading Meter::read() {
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  Reading reading;
  reading.wal = session_->number("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint");
  reading.server_cpu = server_cpu();
  reading.client_cpu = seconds(own.ru_utime) + seconds(own.ru_stime);
  reading.moment = Clock::now();
  return reading;
}

double Meter::server_cpu() const {
  double total = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    Process process = process_of(entry.path());
    if (pid == postmaster_)
      total +=
          static_cast<double>(process.reaped_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
    if (pid == postmaster_ || process.parent == postmaster_) total += own_seconds(entry.path());
  }
  return total;
}

std::string used_json(const Reading& from, const Reading& to) {
  char text[200];
  std::snprintf(text, sizeof text,
                "\"seconds\": %.4f, \"server_cpu\": %.6f, \"client_cpu\": %.6f, \"wal\": %lld",
                milliseconds(to.moment - from.moment) / 1000, to.server_cpu - from.server_cpu,
                to.client_cpu - from.client_cpu, static_cast<long long>(to.wal - from.wal));
  return text;
}

}  // namespace bench
