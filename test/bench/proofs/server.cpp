#include "server.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

// Whose init reaps nothing has dead processes for ever.
constexpr int kMostReapMs = 5000;

struct Status {
  char state = 'X';
  int parent = 0;
};

// From /proc; a process that is gone, or waits to be reaped, is dead.
Status status_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  Status status;
  std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return status;
  if (std::sscanf(line.c_str() + name_end + 1, " %c %d", &status.state, &status.parent) != 2)
    throw std::runtime_error("/proc tells nothing of process " + std::to_string(pid));
  return status;
}

bool is_gone(int pid) { return status_of(pid).state == 'X'; }

bool is_dead(int pid) { return is_gone(pid) || status_of(pid).state == 'Z'; }

std::vector<int> children_of(int parent) {
  std::vector<int> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    int pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && status_of(pid).parent == parent) children.push_back(pid);
  }
  return children;
}

}  // namespace

Server::Server(Session* session, std::vector<std::string> restart_command)
    : postmaster_(status_of(static_cast<int>(session->number("SELECT pg_backend_pid()"))).parent),
      restart_command_(std::move(restart_command)) {
  if (restart_command_.empty()) throw std::runtime_error("no command that restarts the server");
}

void Server::kill_all() {
  // Stopped first, so that it starts nothing between the look and the kill.
  if (kill(postmaster_, SIGSTOP) != 0) throw std::runtime_error("the server cannot be killed");
  std::vector<int> processes = children_of(postmaster_);
  processes.push_back(postmaster_);
  for (int pid : processes) kill(pid, SIGKILL);
  // Until they are reaped too, because who restarts the server takes a dead process for a living
  // one.
  for (int pid : processes)
    for (int i = 0; !is_gone(pid) && (i < kMostReapMs || !is_dead(pid)); i++)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void Server::restart() {
  std::vector<char*> arguments;
  for (std::string& word : restart_command_) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = fork();
  if (child == 0) {
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    throw std::runtime_error("the server did not start again");
  Session session("proof");
  postmaster_ = status_of(static_cast<int>(session.number("SELECT pg_backend_pid()"))).parent;
}

}  // namespace bench
