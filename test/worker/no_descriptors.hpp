// A process without a free descriptor.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include <vector>

#include "base/loop/unique_fd.hpp"

namespace pulse {

// This process has no free descriptor while this lives, but for those that are given back.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit tight{64, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &tight);
    for (int fd = 0; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) {
      taken_.emplace_back(fd);
    }
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

  // False: all were given back before.
  bool give_one_back() {
    if (taken_.empty()) return false;
    taken_.pop_back();
    return true;
  }

 private:
  rlimit before_{};
  std::vector<UniqueFd> taken_;
};

}  // namespace pulse
