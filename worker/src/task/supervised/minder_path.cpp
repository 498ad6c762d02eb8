#include "task/supervised/minder_path.hpp"

#include <limits.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace pulse {
namespace {

std::string folder_of_this_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  const std::string program(path.data(), static_cast<std::size_t>(length));
  return program.substr(0, program.rfind('/'));
}

}  // namespace

std::string find_minder() {
  const char* wanted = std::getenv("PULSE_MINDER");
  if (wanted != nullptr) return access(wanted, X_OK) == 0 ? wanted : std::string();
  const std::string folder = folder_of_this_program();
  for (const std::string& path :
       {folder + "/pulse-minder", folder + "/../libexec/pg_pulse/pulse-minder",
        std::string(PULSE_LIBEXEC_DIR "/pulse-minder")}) {
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

}  // namespace pulse
