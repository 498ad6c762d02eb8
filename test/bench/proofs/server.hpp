// The processes of the server that a session is connected to, to kill them all.
#pragma once

#include <string>
#include <vector>

#include "session.hpp"

namespace bench {

class Server {
 public:
  // restart_command starts the server again after it was killed.
  Server(Session* session, std::vector<std::string> restart_command);
  // SIGKILL to every process at once; returns when none is left.
  void kill_all();
  // Returns when it takes connections again.
  void restart();

 private:
  int postmaster_;
  std::vector<std::string> restart_command_;
};

}  // namespace bench
