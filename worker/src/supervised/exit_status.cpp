#include "supervised/exit_status.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "text/utf8.hpp"

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

bool is_exhaustion(int error) noexcept {
  return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

std::string why_not_executed(int error) {
  switch (error) {
    case ENOEXEC:
      return "it is neither a program for this machine nor a script that begins with #!";
    case ENOENT: return "the interpreter it names was not found";
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
  end.is_transient = stage == Report::kFork || is_exhaustion(error) || is_being_replaced;
  end.error = "cannot execute ";
  end.error += path;
  end.error += ": ";
  if (is_being_replaced) {
    end.error += "the file is being replaced";
  } else if (stage == Report::kExecute) {
    end.error += why_not_executed(error);
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
