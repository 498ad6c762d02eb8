// Protocol: the messages between the worker and pulse-minder, over a pair of Unix stream sockets,
// the line. Both programs are always built together, so the messages are plain structs. The kernel
// takes a message of this size whole or not at all. (The kernel would frame packets, but only ten
// packets may wait, and a reset hides the messages before the reset.)
#pragma once

#include <stdint.h>

namespace pulse::minder {

// Descriptors the minder is started with. The first four are the task's own.
constexpr int kStdinFd = 0;
constexpr int kStdoutFd = 1;
constexpr int kStderrFd = 2;
constexpr int kPulseFd = 3;
constexpr int kLineFd = 4;           // the minder's end of the line
constexpr int kDirectoryFd = 5;      // the directory that holds the executable
constexpr int kFileFd = 6;           // the executable, to see that the name still means this file
constexpr int kWorkDirectoryFd = 7;  // where the task starts
constexpr int kFdCount = 8;

// The beginning of the name of a minder's abstract socket; the worker's pid and start follow.
constexpr const char* kPresence = "pulse-minder/";

// Worker to minder. Times are CLOCK_BOOTTIME in nanoseconds: a message that waited while the minder
// was stopped says as much as at the time of sending.
struct Order {
  enum Kind : int32_t {
    kPing = 1,       // `at`: when SIGTERM is due unless another ping comes
    kTerminate = 2,  // SIGTERM now; `at`: when SIGKILL follows
  };
  int32_t kind;
  int32_t reserved;
  int64_t at;
};

// Minder to worker. After kStarted comes kEnded, and after kNotStarted or kEnded nothing. The
// minder exits with 0 when nothing of the task is left.
struct Report {
  enum Kind : int32_t {
    kStarted = 1,
    kNotStarted = 2,  // `value`: errno; `detail`: Stage
    kExited = 3,      // `value`: exit code; `detail`: StoppedBy
    kSignalled = 4,   // `value`: signal; `detail`: StoppedBy
  };
  enum Stage : int32_t {
    kFork = 1,
    kPrepare = 2,
    kWorkDirectory = 3,
    kChanged = 4,  // the name does not mean the checked file any more
    kExecute = 5,
    kTooLate = 6,  // the deadline has passed, or the worker is gone or wants the task's end
  };
  enum StoppedBy : int32_t { kNobody = 0, kWorker = 1, kSilence = 2 };
  int32_t kind;
  int32_t value;
  int32_t detail;
};

}  // namespace pulse::minder
