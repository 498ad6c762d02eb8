// Which files of the tasks folder are served, and that no name leads anywhere else.
#include "task/executable/tasks_folder.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include "task_bench.hpp"

namespace pulse {
namespace {

using RefusalKind = TaskRefusal::Kind;

class TasksFolderTest : public TaskBench {
 protected:
  TasksFolder must_open() {
    TaskRefusal refusal;
    auto folder = TasksFolder::open(folder_path(), refusal);
    EXPECT_TRUE(folder) << refusal.reason;
    return std::move(*folder);
  }

  // The refusal of `name`; a name that is served fails the test.
  TaskRefusal refusal_of(std::string_view name) {
    TaskRefusal refusal;
    EXPECT_FALSE(must_open().find(name, refusal)) << name;
    EXPECT_FALSE(refusal.reason.empty());
    return refusal;
  }
};

TEST_F(TasksFolderTest, executables_are_listed_by_name) {
  given_task("send", "");
  given_task("mail/welcome.py", "");
  given_task("mail/deep/er", "");
  given_task("README", "", 0644);
  given_task(".hidden", "");
  given_task(".git/hooks/sample", "");
  const auto listing = must_open().list();
  EXPECT_EQ(listing.identifiers,
            (std::vector<std::string>{"mail/deep/er", "mail/welcome.py", "send"}));
  EXPECT_EQ(listing.not_executable, std::vector<std::string>{"README"});
  EXPECT_TRUE(listing.refusals.empty());
}

TEST_F(TasksFolderTest, what_is_refused_is_listed_with_the_reason) {
  given_task("open", "", 0777);
  given_task("good", "");
  std::filesystem::create_symlink("good", path_of("tasks/link"));
  given_task("shared/inside", "");
  ASSERT_EQ(chmod(path_of("tasks/shared").c_str(), 0775), 0);
  const auto listing = must_open().list();
  EXPECT_EQ(listing.identifiers, std::vector<std::string>{"good"});
  EXPECT_EQ(listing.refusals.size(), 3U);
  for (const TaskRefusal& refusal : listing.refusals) EXPECT_EQ(refusal.kind, RefusalKind::unsafe);
}

TEST_F(TasksFolderTest, a_name_is_found_with_its_path) {
  given_task("mail/send", "");
  TaskRefusal refusal;
  const auto found = must_open().find("mail/send", refusal);
  ASSERT_TRUE(found) << refusal.reason;
  EXPECT_EQ(found->path, std::filesystem::canonical(folder_path()) / "mail/send");
  for (const UniqueFd* fd : {&found->file, &found->directory, &found->folder}) {
    EXPECT_EQ(fcntl(fd->get(), F_GETFD), FD_CLOEXEC);
  }
}

TEST_F(TasksFolderTest, a_name_is_1_to_128_characters_and_stays_inside) {
  const std::string euro = "\xE2\x82\xAC";
  std::string euros;
  for (int i = 0; i < 128; ++i) euros += euro;
  for (const std::string& name :
       {std::string("a"), std::string("a/b/c"), std::string("a..b"), std::string("a./b"),
        std::string("with space"), std::string("-rf"), std::string("$(id);`id`"), euros}) {
    EXPECT_TRUE(TasksFolder::is_valid_name(name)) << name;
  }
  for (const std::string& name : {std::string(),
                                  std::string("."),
                                  std::string(".."),
                                  std::string("../x"),
                                  std::string("a/../x"),
                                  std::string("a/.."),
                                  std::string("/etc/passwd"),
                                  std::string("a//b"),
                                  std::string("a/"),
                                  std::string("/"),
                                  std::string(".hidden"),
                                  std::string("a/.hidden"),
                                  std::string("a\nb"),
                                  std::string("a\tb"),
                                  std::string("a\x7F"),
                                  std::string("a\\b"),
                                  std::string("a\0b", 3),
                                  std::string("a\xC2\x85"),
                                  std::string("a\xFF"),
                                  std::string("a\xE2\x82"),
                                  euros + "a",
                                  std::string(129, 'a'),
                                  std::string(4096, 'a')}) {
    EXPECT_FALSE(TasksFolder::is_valid_name(name)) << name;
    EXPECT_EQ(refusal_of(name).kind, RefusalKind::bad_name) << name;
  }
}

TEST_F(TasksFolderTest, a_missing_name_is_not_found) {
  given_task("file", "");
  EXPECT_EQ(refusal_of("nothing").kind, RefusalKind::not_found);
  EXPECT_EQ(refusal_of("no/folder").kind, RefusalKind::not_found);
  EXPECT_EQ(refusal_of("file/below").kind, RefusalKind::not_found);
}

TEST_F(TasksFolderTest, what_is_no_executable_file_is_not_executable) {
  given_task("plain", "", 0644);
  given_task("folder/file", "");
  ASSERT_EQ(mkfifo(path_of("tasks/fifo").c_str(), 0755), 0);
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string socket_path = path_of("tasks/socket");
  ASSERT_LT(socket_path.size(), sizeof address.sun_path);
  socket_path.copy(address.sun_path, socket_path.size());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  for (const char* name : {"plain", "folder", "fifo", "socket"}) {
    EXPECT_EQ(refusal_of(name).kind, RefusalKind::not_executable) << name;
  }
}

TEST_F(TasksFolderTest, links_are_refused_wherever_they_lead) {
  given_task("good", "");
  given_task("inside/good", "");
  std::filesystem::create_symlink("/bin/true", path_of("tasks/out"));
  std::filesystem::create_symlink("good", path_of("tasks/in"));
  std::filesystem::create_symlink("/nowhere", path_of("tasks/dangling"));
  std::filesystem::create_directory_symlink("/bin", path_of("tasks/bin"));
  std::filesystem::create_directory_symlink("inside", path_of("tasks/alias"));
  std::filesystem::create_directory_symlink("/proc/self/root", path_of("tasks/magic"));
  for (const char* name : {"out", "in", "dangling", "bin/true", "alias/good", "magic/bin/true"}) {
    EXPECT_EQ(refusal_of(name).kind, RefusalKind::unsafe) << name;
  }
}

TEST_F(TasksFolderTest, what_others_may_write_is_refused) {
  given_task("good", "");
  given_task("world", "", 0757);
  given_task("group", "", 0775);
  given_task("shared/inside", "");
  ASSERT_EQ(chmod(path_of("tasks/shared").c_str(), 0777), 0);
  for (const char* name : {"world", "group", "shared/inside"}) {
    EXPECT_EQ(refusal_of(name).kind, RefusalKind::unsafe) << name;
  }
  for (const mode_t mode : {0777, 0775, 01777}) {
    ASSERT_EQ(chmod(folder_path().c_str(), mode), 0);
    TaskRefusal refusal;
    EXPECT_FALSE(TasksFolder::open(folder_path(), refusal));
    EXPECT_EQ(refusal.kind, RefusalKind::unsafe);
  }
}

TEST_F(TasksFolderTest, what_gives_rights_is_refused) {
  given_task("setuid", "", 04755);
  given_task("setgid", "", 02755);
  EXPECT_EQ(refusal_of("setuid").kind, RefusalKind::unsafe);
  EXPECT_EQ(refusal_of("setgid").kind, RefusalKind::unsafe);
}

TEST_F(TasksFolderTest, what_another_user_owns_is_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr uid_t kOther = 12345;
  given_task("file", "");
  ASSERT_EQ(chown(path_of("tasks/file").c_str(), kOther, kOther), 0);
  EXPECT_EQ(refusal_of("file").kind, RefusalKind::unsafe);
  ASSERT_EQ(chown(folder_path().c_str(), kOther, kOther), 0);
  TaskRefusal refusal;
  EXPECT_FALSE(TasksFolder::open(folder_path(), refusal));
  EXPECT_EQ(refusal.kind, RefusalKind::unsafe);
}

TEST_F(TasksFolderTest, a_folder_that_is_not_there_is_told) {
  TaskRefusal refusal;
  EXPECT_FALSE(TasksFolder::open(path_of("nowhere"), refusal));
  EXPECT_EQ(refusal.kind, RefusalKind::not_found);
  given_task("file", "");
  EXPECT_FALSE(TasksFolder::open(path_of("tasks/file"), refusal));
  EXPECT_TRUE(refusal.reason.ends_with("tasks/file is not a folder")) << refusal.reason;
  EXPECT_NE(refusal.kind, RefusalKind::not_found) << "which the default folder may be";
}

TEST_F(TasksFolderTest, the_folder_itself_may_be_reached_by_a_link) {
  given_task("good", "");
  std::filesystem::create_directory_symlink("tasks", path_of("current"));
  TaskRefusal refusal;
  const auto folder = TasksFolder::open(path_of("current"), refusal);
  ASSERT_TRUE(folder) << refusal.reason;
  EXPECT_TRUE(folder->find("good", refusal)) << refusal.reason;
}

}  // namespace
}  // namespace pulse
