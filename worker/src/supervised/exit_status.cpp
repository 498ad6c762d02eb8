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

TaskEnd::StoppedBy stopped_by(int detail) noexcept {
  switch (detail) {
    case Report::kWorker: return TaskEnd::StoppedBy::worker;
    case Report::kSilence: return TaskEnd::StoppedBy::silence;
    default: return TaskEnd::StoppedBy::nobody;
  }
}

TaskEnd describe_exit(int code) {
  TaskEnd end;
  end.exit_code = code;
  if (code == 0) {
    end.kind = TaskEnd::Kind::succeeded;
    return end;
  }
  end.kind = code == kForGood ? TaskEnd::Kind::failed_for_good : TaskEnd::Kind::failed;
  end.error = "exited with code " + std::to_string(code);
  return end;
}

TaskEnd describe_signal(int signal) {
  TaskEnd end;
  end.kind = TaskEnd::Kind::signalled;
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

TaskEnd describe_failed_start(int error, int stage, std::string_view path) {
  TaskEnd end;
  end.kind = TaskEnd::Kind::not_started;
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

TaskEnd describe_end(const Report& report, std::string_view path) {
  if (report.kind == Report::kNotStarted) {
    return describe_failed_start(report.value, report.detail, path);
  }
  TaskEnd end =
      report.kind == Report::kExited ? describe_exit(report.value) : describe_signal(report.value);
  end.stopped_by = stopped_by(report.detail);
  return end;
}

TaskEnd describe_lost_minder() {
  TaskEnd end;
  end.kind = TaskEnd::Kind::minder_lost;
  end.error = "the task's parent process (pulse-minder) was killed, and the task with it";
  return end;
}

}  // namespace pulse
