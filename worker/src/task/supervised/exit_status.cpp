#include "task/supervised/exit_status.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <system_error>

#include "base/loop/unique_fd.hpp"
#include "base/text/exhaustion.hpp"
#include "base/text/stderr_tail.hpp"

namespace pulse {
namespace {

using minder::Report;

constexpr int kForGood = 100;

ExecutionEnd::StoppedBy stopped_by(int detail) noexcept {
  switch (detail) {
    case Report::kWorker: return ExecutionEnd::StoppedBy::worker;
    case Report::kSilence: return ExecutionEnd::StoppedBy::silence;
    default: return ExecutionEnd::StoppedBy::nobody;
  }
}

ExecutionEnd describe_exit(int code) {
  ExecutionEnd end;
  end.exit_code = code;
  if (code == 0) {
    end.kind = ExecutionEnd::Kind::succeeded;
    return end;
  }
  end.kind = code == kForGood ? ExecutionEnd::Kind::failed_for_good : ExecutionEnd::Kind::failed;
  end.error = "exited with code " + std::to_string(code);
  return end;
}

ExecutionEnd describe_signal(int signal) {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::signalled;
  end.signal = signal;
  end.error = "ended by signal " + std::to_string(signal);
  if (const char* name = sigabbrev_np(signal)) end.error += std::string(" (SIG") + name + ')';
  return end;
}

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The first line of a file, as far as the kernel reads; empty where the file cannot be read.
std::string first_line(const std::string& path) {
  std::array<char, 256> bytes{};
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const ssize_t size = file.valid() ? read(file.get(), bytes.data(), bytes.size()) : 0;
  const std::string_view text(bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return std::string(text.substr(0, text.find('\n')));
}

std::string why_no_interpreter(const std::string& path) {
  std::string line = first_line(path);
  if (!line.starts_with("#!")) return "the interpreter it names was not found";
  const bool is_from_windows = line.ends_with('\r');
  if (is_from_windows) line.pop_back();
  const std::size_t begin = std::min(line.find_first_not_of(" \t", 2), line.size());
  const std::string name = line.substr(begin, line.find_first_of(" \t", begin) - begin);
  if (is_from_windows) {
    return "its first line ends in CR LF, so " + name +
           " with a CR is searched for: sed -i 's/\\r$//' " + path;
  }
  return "its first line names " + name + ", which was not found";
}

std::string why_no_program(const std::string& path) {
  if (first_line(path).starts_with(kByteOrderMark)) {
    return "a byte order mark stands before its #!: sed -i '1s/^\\xEF\\xBB\\xBF//' " + path;
  }
  return "it is neither a program for this machine nor a script that begins with #!";
}

std::string why_not_executed(int error, const std::string& path) {
  switch (error) {
    case ENOEXEC: return why_no_program(path);
    case ENOENT: return why_no_interpreter(path);
    case EACCES:
      return "permission denied: it, its interpreter or its file system forbids execution";
    default: return std::generic_category().message(error);
  }
}

ExecutionEnd describe_failed_start(int error, int stage, std::string_view path) {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::not_started;
  // A file that is being written or was exchanged a moment ago is as good as new on the next try.
  const bool is_being_replaced = stage == Report::kChanged || error == ETXTBSY;
  const bool is_too_late = stage == Report::kTooLate;
  end.is_transient =
      stage == Report::kFork || is_exhaustion(error) || is_being_replaced || is_too_late;
  end.error = "cannot execute ";
  end.error += path;
  end.error += ": ";
  if (is_being_replaced) {
    end.error += "the file is being replaced";
  } else if (is_too_late) {
    end.error += "the claim was too old when it was to start";
  } else if (stage == Report::kExecute) {
    end.error += storable_text(why_not_executed(error, std::string(path)));
  } else {
    end.error += std::generic_category().message(error);
  }
  return end;
}

}  // namespace

ExecutionEnd describe_end(const Report& report, std::string_view path) {
  if (report.kind == Report::kNotStarted) {
    return describe_failed_start(report.value, report.detail, path);
  }
  ExecutionEnd end =
      report.kind == Report::kExited ? describe_exit(report.value) : describe_signal(report.value);
  end.stopped_by = stopped_by(report.detail);
  return end;
}

ExecutionEnd describe_lost_minder() {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::minder_lost;
  end.error = "the task's parent process (pulse-minder) was killed, and the task with it";
  return end;
}

}  // namespace pulse
