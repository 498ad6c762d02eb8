#include "base/log/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace pulse {

void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // In the direction that no program uses. open() takes the lowest free number: this stream's.
    (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

bool is_output_closed(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags < 0 || (flags & O_ACCMODE) == O_RDONLY;
}

}  // namespace pulse
