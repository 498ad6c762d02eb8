// bench-flush FILE EVERY_MS: what the disk alone takes. Overwrites 8 kB of the file and flushes
// them, as the log's writer does, at each interval until it is told to end (SIGTERM). Then prints
// each flush in milliseconds.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPage = 8192;
constexpr int kPages = 2048;  // a segment of the log

volatile std::sig_atomic_t is_told_to_end = 0;

void check(bool is_ok, const char* what) {
  if (!is_ok) throw std::system_error(errno, std::generic_category(), what);
}

void write_page(int file, int page) {
  static const std::string kText(kPage, 'x');
  check(pwrite(file, kText.data(), kPage, static_cast<off_t>(kPage) * page) == kPage, "pwrite");
}

double flush_ms(int file, int page) {
  Clock::time_point start = Clock::now();
  write_page(file, page);
  check(fdatasync(file) == 0, "fdatasync");
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::vector<double> flush_until_told(const char* path, std::chrono::milliseconds every) {
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  check(file >= 0, path);
  check(unlink(path) == 0, path);
  for (int page = 0; page < kPages; page++) write_page(file, page);
  check(fsync(file) == 0, "fsync");
  std::vector<double> taken;
  for (Clock::time_point next = Clock::now(); !is_told_to_end; next += every) {
    std::this_thread::sleep_until(next);
    taken.push_back(flush_ms(file, static_cast<int>(taken.size() % kPages)));
  }
  close(file);
  return taken;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: bench-flush FILE EVERY_MS\n");
    return 2;
  }
  std::signal(SIGTERM, [](int) { is_told_to_end = 1; });
  try {
    for (double ms :
         flush_until_told(arguments[1], std::chrono::milliseconds(std::atoi(arguments[2]))))
      std::printf("%.4f\n", ms);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-flush: %s\n", error.what());
    return 1;
  }
  return 0;
}
