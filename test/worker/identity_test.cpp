// Telling one process from another.
#include "liveness/identity.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "no_descriptors.hpp"

namespace pulse {
namespace {

TEST(IdentityTest, this_process_says_who_it_is) {
  const Identity identity = read_identity();
  EXPECT_EQ(identity.pid, getpid());
  EXPECT_FALSE(identity.hostname.empty());
  EXPECT_EQ(identity.boot_id.size(), 36U);
  EXPECT_EQ(identity.pid_namespace.rfind("pid:[", 0), 0U) << identity.pid_namespace;
  EXPECT_GT(std::stoll(identity.process_start), 0);
}

TEST(IdentityTest, the_start_of_a_process_stays) {
  EXPECT_EQ(read_process_start(getpid()), read_process_start(getpid()));
  EXPECT_FALSE(read_process_start(1).empty());
}

TEST(IdentityTest, a_dead_process_has_no_start_even_before_it_is_waited_for) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(read_process_start(child), "");
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(read_process_start(child), "");
}

TEST(IdentityTest, a_process_is_gone_when_its_pid_is_or_is_somebody_elses) {
  const std::string start = read_process_start(getpid());
  EXPECT_FALSE(is_process_gone(getpid(), start));
  EXPECT_TRUE(is_process_gone(getpid(), start + "0")) << "another process has the pid now";
  EXPECT_FALSE(is_process_gone(getpid(), "")) << "not known by its start";
  EXPECT_FALSE(is_process_gone(0, start));
  EXPECT_FALSE(is_process_gone(1LL << 40, start));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_process_gone(child, start)) << "dead, only not yet waited for";
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(is_process_gone(child, ""));
}

TEST(IdentityTest, minders_that_cannot_be_looked_for_may_be_there) {
  const pid_t pid = getpid();
  const std::string start = read_process_start(pid);
  EXPECT_FALSE(has_minders(pid, start));
  const NoDescriptors none;
  EXPECT_TRUE(has_minders(pid, start));
}

TEST(IdentityTest, the_server_is_told_in_json) {
  Identity identity;
  identity.hostname = "host";
  identity.boot_id = "boot";
  identity.pid_namespace = "pid:[1]";
  identity.pid = 12;
  identity.process_start = "345";
  const auto json = nlohmann::json::parse(identity_json(identity, 3));
  EXPECT_EQ(json["hostname"], "host");
  EXPECT_EQ(json["boot_id"], "boot");
  EXPECT_EQ(json["pid_namespace"], "pid:[1]");
  EXPECT_EQ(json["pid"], 12);
  EXPECT_EQ(json["process_start"], "345");
  EXPECT_EQ(json["kill_grace_ms"], 6000);
  EXPECT_EQ(json["slots"], 3);
  EXPECT_FALSE(json["version"].get<std::string>().empty());
}

}  // namespace
}  // namespace pulse
