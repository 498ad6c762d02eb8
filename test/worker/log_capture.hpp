// A log that a test can read.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/log/log.hpp"
#include "base/loop/unique_fd.hpp"

namespace pulse {

class LogCapture {
 public:
  explicit LogCapture(LogFormat format = LogFormat::text, LogLevel threshold = LogLevel::debug)
      : file_(memfd_create("log", MFD_CLOEXEC)), log_(format, threshold, file_.get()) {}

  Log& log() { return log_; }

  // Everything written so far; ends the log.
  std::string text() {
    log_.close();
    std::string text;
    std::array<char, 4096> piece{};
    ssize_t length = 0;
    while ((length = pread(file_.get(), piece.data(), piece.size(),
                           static_cast<off_t>(text.size()))) > 0) {
      text.append(piece.data(), static_cast<std::size_t>(length));
    }
    return text;
  }
  bool has(const std::string& part) { return text().find(part) != std::string::npos; }
  int count(const std::string& part) {
    const std::string whole = text();
    int found = 0;
    for (std::size_t at = 0; (at = whole.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  }

 private:
  UniqueFd file_;
  Log log_;
};

}  // namespace pulse
