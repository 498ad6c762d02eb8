// A tasks folder whose path leads somewhere else after a release.
#include "task/executable/served_folder.hpp"

#include "task_bench.hpp"

namespace pulse {
namespace {

class ServedFolderTest : public TaskBench {
 protected:
  // Makes `current` lead to that release, as `ln -sfn` does.
  void given_release(const std::string& name) {
    std::filesystem::create_directories(place_ / name);
    std::filesystem::remove(place_ / "current");
    std::filesystem::create_directory_symlink(place_ / name, place_ / "current");
  }
  void given_file(const std::string& name) {
    std::ofstream(place_ / name) << "#!/bin/sh\n";
    ASSERT_EQ(chmod((place_ / name).c_str(), 0755), 0);
  }

  TaskRefusal refusal_;
};

TEST_F(ServedFolderTest, each_start_and_each_list_follow_the_link_again) {
  given_release("1");
  given_file("1/send");
  ServedFolder folder(path_of("current"));
  ASSERT_TRUE(folder.check(refusal_)) << refusal_.reason;
  EXPECT_EQ(folder.find("send", refusal_)->path, path_of("1/send"));
  given_release("2");
  given_file("2/send");
  given_file("2/report");
  EXPECT_EQ(folder.find("send", refusal_)->path, path_of("2/send"));
  EXPECT_EQ(folder.list().identifiers, (std::vector<std::string>{"report", "send"}));
  EXPECT_EQ(folder.path(), path_of("2"));
}

TEST_F(ServedFolderTest, what_is_not_there_is_missing_until_it_is_listed_again) {
  given_release("1");
  ServedFolder folder(path_of("current"));
  EXPECT_FALSE(folder.find("send", refusal_));
  EXPECT_EQ(folder.missing(), std::set<std::string>{"send"});
  folder.list();
  EXPECT_EQ(folder.missing(), std::set<std::string>{"send"});
  given_file("1/send");
  folder.list();
  EXPECT_TRUE(folder.missing().empty());
}

TEST_F(ServedFolderTest, behind_a_link_to_nowhere_everything_is_missing) {
  given_release("1");
  ServedFolder folder(path_of("current"));
  std::filesystem::remove(place_ / "current");
  EXPECT_FALSE(folder.find("send", refusal_));
  EXPECT_EQ(folder.missing(), std::set<std::string>{"send"});
  const auto listing = folder.list();
  ASSERT_TRUE(listing.failure);
  EXPECT_TRUE(listing.failure->reason.ends_with("current does not exist"));
}

TEST_F(ServedFolderTest, nothing_is_said_of_a_folder_that_nobody_named) {
  ServedFolder folder(path_of("tasks of nobody"), ServedFolder::Wish::usual);
  EXPECT_FALSE(folder.list().failure);
  given_release("tasks of nobody");
  ASSERT_EQ(chmod(path_of("tasks of nobody").c_str(), 0777), 0);
  EXPECT_TRUE(folder.list().failure) << "what is there is judged";
}

TEST_F(ServedFolderTest, without_descriptors_the_last_list_stays) {
  given_release("1/mail");
  given_file("1/send");
  given_file("1/mail/welcome");
  ServedFolder folder(path_of("1"));
  const auto all = folder.list().identifiers;
  EXPECT_EQ(all.size(), 2U);
  NoDescriptors none;
  int failures = 0;
  // With each descriptor given back, the list comes one step further, until it is whole.
  do {
    const auto listing = folder.list();
    EXPECT_EQ(listing.identifiers, all);
    EXPECT_EQ(folder.list_present().identifiers, all);
    EXPECT_TRUE(listing.refusals.empty());
    if (!listing.failure) break;
    EXPECT_TRUE(listing.failure->is_transient()) << listing.failure->reason;
    ++failures;
  } while (none.give_one_back());
  EXPECT_GE(failures, 5);
  EXPECT_FALSE(folder.list().failure);
}

TEST_F(ServedFolderTest, the_last_list_of_a_folder_that_is_away_stays_until_a_task_is_missing) {
  for (const auto wish : {ServedFolder::Wish::named, ServedFolder::Wish::usual}) {
    given_release("1");
    given_file("1/send");
    ServedFolder folder(path_of("current"), wish);
    const auto all = folder.list().identifiers;
    std::filesystem::remove(place_ / "current");
    EXPECT_EQ(folder.list().identifiers, all);
    EXPECT_FALSE(folder.list().failure->is_transient());
    EXPECT_TRUE(folder.list_present().identifiers.empty());
    EXPECT_TRUE(folder.list().identifiers.empty()) << "and is not served again";
  }
}

// As the kubelet does: `..data` leads to the files of now, and each file is a link through it.
TEST_F(ServedFolderTest, the_files_of_a_config_map_are_behind_its_data) {
  const auto publish = [this](const std::string& version) {
    std::filesystem::create_directories(place_ / "map" / version);
    given_file("map/" + version + "/send");
    std::filesystem::create_directory_symlink(version, place_ / "map/..new");
    std::filesystem::rename(place_ / "map/..new", place_ / "map/..data");
  };
  publish("..1");
  std::filesystem::create_symlink("..data/send", place_ / "map/send");
  EXPECT_TRUE(ServedFolder(path_of("map")).list().identifiers.empty());
  ServedFolder folder(path_of("map/..data"));
  EXPECT_EQ(folder.list().identifiers, std::vector<std::string>{"send"});
  EXPECT_EQ(folder.find("send", refusal_)->path, path_of("map/..1/send"));
  publish("..2");
  EXPECT_EQ(folder.find("send", refusal_)->path, path_of("map/..2/send"));
}

TEST_F(ServedFolderTest, a_folder_that_became_unsafe_starts_nothing) {
  given_release("1");
  given_file("1/send");
  ServedFolder folder(path_of("current"));
  ASSERT_TRUE(folder.find("send", refusal_));
  ASSERT_EQ(chmod(path_of("1").c_str(), 0777), 0);
  EXPECT_FALSE(folder.find("send", refusal_));
}

TEST_F(ServedFolderTest, an_unsafe_file_is_not_missing) {
  given_release("1");
  given_file("1/send");
  ASSERT_EQ(chmod(path_of("1/send").c_str(), 0777), 0);
  ServedFolder folder(path_of("current"));
  EXPECT_FALSE(folder.find("send", refusal_));
  EXPECT_TRUE(folder.missing().empty()) << "its jobs fail with the reason";
}

}  // namespace
}  // namespace pulse
