// What a service manager is told, over its socket.
#include "observe/service_manager.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

#include "fake_clock.hpp"
#include "log_capture.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

class ServiceManagerTest : public ::testing::Test {
 protected:
  using Messages = std::vector<std::string>;

  void SetUp() override {
    name_ = "@pulse-test-" + std::to_string(getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path, sizeof address.sun_path - 1);
    address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    ASSERT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  }

  void given_manager(std::optional<Duration> watchdog = std::nullopt) {
    manager_.emplace(ServiceManager::Wishes{name_, watchdog}, timers_, capture_.log());
  }
  void given_watched() {
    given_manager(3s);
    manager_->publish(state_);
    ASSERT_EQ(told(), (Messages{"STATUS=registering"}));
  }
  // What it has been told since the last call.
  std::vector<std::string> told() {
    std::vector<std::string> messages;
    std::array<char, 4096> text{};
    ssize_t length = 0;
    while ((length = recv(socket_.get(), text.data(), text.size(), MSG_DONTWAIT)) > 0) {
      messages.emplace_back(text.data(), static_cast<std::size_t>(length));
    }
    return messages;
  }
  void given_ready() {
    state_.is_established = true;
    state_.worker_id = 7;
    state_.concurrency = 4;
    manager_->publish(state_);
  }
  std::string name_;
  UniqueFd socket_{socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  FakeClock clock_;
  Timers timers_{clock_};
  LogCapture capture_;
  WorkerState state_;
  std::optional<ServiceManager> manager_;
};

TEST_F(ServiceManagerTest, it_is_ready_once_it_is_registered) {
  given_manager();
  manager_->publish(state_);
  EXPECT_EQ(told(), (Messages{"STATUS=registering"}));
  given_ready();
  EXPECT_EQ(told(), (Messages{"READY=1", "STATUS=0 of 4 running, worker 7"}));
  state_.is_established = false;
  manager_->publish(state_);
  given_ready();
  EXPECT_EQ(told(), Messages{}) << "only once";
}

TEST_F(ServiceManagerTest, it_stops_once_it_drains) {
  given_manager();
  given_ready();
  told();
  state_.is_draining = true;
  state_.running = 2;
  manager_->publish(state_);
  manager_->publish(state_);
  EXPECT_EQ(told(), (Messages{"STOPPING=1", "STATUS=draining, 2 of 4 running, worker 7"}));
}

TEST_F(ServiceManagerTest, its_status_is_told_when_it_changes_and_not_each_time) {
  given_manager();
  given_ready();
  told();
  for (state_.running = 1; state_.running <= 3; ++state_.running) manager_->publish(state_);
  EXPECT_EQ(told(), Messages{});
  pass(clock_, timers_, 1s);
  EXPECT_EQ(told(), (Messages{"STATUS=3 of 4 running, worker 7"}));
  pass(clock_, timers_, 5s);
  EXPECT_EQ(told(), Messages{});
}

TEST_F(ServiceManagerTest, the_loop_feeds_the_watchdog_at_half_of_its_time) {
  given_watched();
  pass(clock_, timers_, 1499ms);
  EXPECT_EQ(told(), Messages{});
  pass(clock_, timers_, 1ms);
  EXPECT_EQ(told(), (Messages{"WATCHDOG=1"}));
  pass(clock_, timers_, 3s);
  EXPECT_EQ(told(), (Messages{"WATCHDOG=1", "WATCHDOG=1"}));
}

TEST_F(ServiceManagerTest, a_loop_that_does_not_turn_feeds_nobody) {
  given_watched();
  clock_.advance(1min);
  EXPECT_EQ(told(), Messages{});
  timers_.run_due();
  EXPECT_EQ(told(), (Messages{"WATCHDOG=1"}));
}

TEST_F(ServiceManagerTest, a_reload_begins_and_ends) {
  given_manager();
  manager_->begin_reload();
  manager_->end_reload();
  const Messages early = told();
  ASSERT_EQ(early.size(), 1U) << "not ready before, so not ready now";
  EXPECT_TRUE(early[0].starts_with("RELOADING=1\nMONOTONIC_USEC=")) << early[0];
  given_ready();
  told();
  manager_->begin_reload();
  manager_->end_reload();
  EXPECT_EQ(told().back(), "READY=1");
}

TEST_F(ServiceManagerTest, a_listener_that_does_not_read_blocks_nobody_and_hears_it_later) {
  given_manager();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name_.copy(address.sun_path, sizeof address.sun_path - 1);
  address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
  const auto send_one = [&](const UniqueFd& sender) {
    return sendto(sender.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&address), length) == 1;
  };
  // One sender may have filled only its own buffer. The listener is full when a new one fails.
  std::vector<UniqueFd> senders;
  bool is_full = false;
  while (!is_full) {
    senders.emplace_back(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    is_full = !send_one(senders.back());
    while (send_one(senders.back())) {
    }
  }
  given_ready();
  told();
  pass(clock_, timers_, 1s);
  EXPECT_EQ(told(), (Messages{"STATUS=0 of 4 running, worker 7", "READY=1"}));
}

TEST_F(ServiceManagerTest, nobody_there_is_nobody_told) {
  socket_.reset();
  given_manager(1s);
  given_ready();
  pass(clock_, timers_, 3s);
  manager_.emplace(ServiceManager::Wishes{}, timers_, capture_.log());
  EXPECT_FALSE(manager_->is_listening());
  manager_->publish(state_);
  manager_.emplace(ServiceManager::Wishes{"vsock:2:1234", 1s}, timers_, capture_.log());
  EXPECT_FALSE(manager_->is_listening());
  EXPECT_TRUE(capture_.has("notify_socket_unknown socket=vsock:2:1234"));
}

TEST(ServiceManagerWishes, are_taken_out_of_the_environment) {
  setenv("NOTIFY_SOCKET", "/run/notify", 1);
  setenv("WATCHDOG_USEC", "3000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  const auto wishes = ServiceManager::take_wishes();
  EXPECT_EQ(wishes.socket, "/run/notify");
  EXPECT_EQ(wishes.watchdog, Duration(3000));
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
    EXPECT_EQ(getenv(name), nullptr) << name;
  }
}

TEST(ServiceManagerWishes, the_watchdog_of_another_process_is_not_ours) {
  setenv("WATCHDOG_USEC", "3000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_FALSE(ServiceManager::take_wishes().watchdog);
  EXPECT_FALSE(ServiceManager::take_wishes().watchdog) << "nothing is left";
  for (const char* nonsense : {"", "0", "-5", "3s"}) {
    setenv("WATCHDOG_USEC", nonsense, 1);
    EXPECT_FALSE(ServiceManager::take_wishes().watchdog) << nonsense;
  }
}

}  // namespace
}  // namespace pulse
