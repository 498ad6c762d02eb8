// What is passed to libpq: what the user said first, our defaults last.
#include "base/postgres/connection_options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace pulse {
namespace {

using namespace std::chrono_literals;

class ConnectOptionsTest : public ::testing::Test {
 protected:
  ConnectOptionsTest() {
    for (const char* name :
         {"PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE", "PGSERVICEFILE",
          "PGTARGETSESSIONATTRS", "PGCONNECT_TIMEOUT", "PGAPPNAME", "PGPASSWORD"}) {
      unsetenv(name);
    }
  }

  static ConnectOptions must_read(const std::string& database) {
    auto result = ConnectOptions::read(database, "pulse-worker test");
    EXPECT_TRUE(std::holds_alternative<ConnectOptions>(result)) << std::get<std::string>(result);
    return std::get<ConnectOptions>(std::move(result));
  }
  // The last of a keyword counts, as in libpq.
  static std::string value(const ConnectOptions& options, const std::string& keyword) {
    std::string found = "(absent)";
    for (const auto& option : options.list()) {
      if (option.keyword == keyword) found = option.value;
    }
    return found;
  }
};

TEST_F(ConnectOptionsTest, the_password_does_not_stay_in_the_environment) {
  setenv("PGPASSWORD", "hunter2", 1);
  const char* place = std::getenv("PGPASSWORD");
  const ConnectOptions options = must_read("");
  EXPECT_EQ(value(options, "password"), "hunter2");
  EXPECT_EQ(value(must_read("password=other"), "password"), "other");
  ConnectOptions::forget_password();
  EXPECT_EQ(std::getenv("PGPASSWORD"), nullptr);
  EXPECT_STREQ(place, "") << "where /proc shows what the process was started with";
  ConnectOptions::forget_password();
}

TEST_F(ConnectOptionsTest, nothing_said_leaves_all_to_libpq_but_our_defaults) {
  const ConnectOptions options = must_read("");
  EXPECT_EQ(value(options, "dbname"), "(absent)");
  EXPECT_EQ(value(options, "target_session_attrs"), "primary");
  EXPECT_EQ(value(options, "keepalives_idle"), "5");
  EXPECT_EQ(value(options, "keepalives_interval"), "5");
  EXPECT_EQ(value(options, "keepalives_count"), "3");
  EXPECT_EQ(value(options, "tcp_user_timeout"), "15000");
  EXPECT_EQ(value(options, "fallback_application_name"), "pulse-worker test");
  EXPECT_EQ(value(options, "client_encoding"), "UTF8");
  EXPECT_EQ(options.deadline(), 5s);
}

TEST_F(ConnectOptionsTest, a_plain_word_is_a_database) {
  EXPECT_EQ(value(must_read("shop"), "dbname"), "shop");
}

TEST_F(ConnectOptionsTest, a_connection_string_and_a_uri_are_read) {
  for (const char* text :
       {"host=db.example port=6000 dbname=shop user=w", "postgresql://w@db.example:6000/shop"}) {
    const ConnectOptions options = must_read(text);
    EXPECT_EQ(value(options, "host"), "db.example");
    EXPECT_EQ(value(options, "port"), "6000");
    EXPECT_EQ(value(options, "dbname"), "shop");
    EXPECT_EQ(value(options, "user"), "w");
  }
}

TEST_F(ConnectOptionsTest, what_the_user_set_stays) {
  const ConnectOptions options = must_read(
      "keepalives_idle=60 tcp_user_timeout=1 target_session_attrs=any application_name=mine "
      "connect_timeout=20");
  EXPECT_EQ(value(options, "keepalives_idle"), "60");
  EXPECT_EQ(value(options, "tcp_user_timeout"), "1");
  EXPECT_EQ(value(options, "keepalives_count"), "3");
  EXPECT_EQ(value(options, "target_session_attrs"), "any");
  EXPECT_EQ(value(options, "application_name"), "mine");
  EXPECT_EQ(options.deadline(), 20s);
}

// For libpq a server whose sessions are read-only by default is no such server.
TEST_F(ConnectOptionsTest, who_asks_for_a_server_to_write_on_gets_a_primary) {
  const std::string wanted = "target_session_attrs=read-write";
  EXPECT_EQ(value(must_read(wanted), "target_session_attrs"), "primary");
  setenv("PGTARGETSESSIONATTRS", "read-write", 1);
  EXPECT_EQ(value(must_read("shop"), "target_session_attrs"), "primary");
  EXPECT_EQ(value(must_read("target_session_attrs=standby"), "target_session_attrs"), "standby");
}

TEST_F(ConnectOptionsTest, the_environment_counts_where_nothing_was_said) {
  setenv("PGHOST", "env.example", 1);
  setenv("PGTARGETSESSIONATTRS", "primary", 1);
  setenv("PGCONNECT_TIMEOUT", "7", 1);
  const ConnectOptions options = must_read("shop");
  EXPECT_EQ(value(options, "host"), "env.example");
  EXPECT_EQ(value(options, "target_session_attrs"), "(absent)");
  EXPECT_EQ(options.deadline(), 7s);
  EXPECT_EQ(value(must_read("host=said.example"), "host"), "said.example");
}

TEST_F(ConnectOptionsTest, a_service_is_found_by_name_and_by_variable) {
  const auto file = std::filesystem::temp_directory_path() / "pulse_connection_options_test.conf";
  std::ofstream(file) << "[shop]\nhost=service.example\nkeepalives_idle=77\n";
  setenv("PGSERVICEFILE", file.c_str(), 1);
  const ConnectOptions said = must_read("service=shop");
  EXPECT_EQ(value(said, "service"), "shop");
  EXPECT_EQ(value(said, "host"), "service.example");
  EXPECT_EQ(value(said, "keepalives_idle"), "(absent)") << "the service file says 77";
  EXPECT_EQ(std::getenv("PGSERVICE"), nullptr) << "borrowed only";
  setenv("PGSERVICE", "shop", 1);
  EXPECT_EQ(value(must_read(""), "host"), "service.example");
  std::filesystem::remove(file);
}

TEST_F(ConnectOptionsTest, an_unreadable_string_is_an_error_that_shows_no_password) {
  const auto result = ConnectOptions::read("host=h password=secret oops=1", "x");
  ASSERT_TRUE(std::holds_alternative<std::string>(result));
  EXPECT_NE(std::get<std::string>(result).find("oops"), std::string::npos);
  EXPECT_EQ(std::get<std::string>(result).find("secret"), std::string::npos);
}

TEST_F(ConnectOptionsTest, a_port_that_is_none_is_told_before_any_connection) {
  for (const char* text : {"port=5432x", "postgresql://h:abc/shop", "port=0", "port=1,65536"}) {
    const auto result = ConnectOptions::read(text, "x");
    ASSERT_TRUE(std::holds_alternative<std::string>(result)) << text;
    EXPECT_TRUE(std::get<std::string>(result).ends_with("is no number of a port")) << text;
  }
  EXPECT_EQ(value(must_read("host=a,b,c port='5433,,5434 '"), "port"), "5433,,5434 ");
}

TEST_F(ConnectOptionsTest, after_a_host_that_did_not_answer_the_next_one_comes_first) {
  ConnectOptions options = must_read("host=a,b,c port=1,2,3 dbname=shop");
  EXPECT_TRUE(options.has_several_hosts());
  options.rotate_hosts();
  EXPECT_EQ(value(options, "host"), "b,c,a");
  EXPECT_EQ(value(options, "port"), "2,3,1");
  EXPECT_EQ(value(options, "dbname"), "shop");
}

TEST_F(ConnectOptionsTest, one_host_stays_where_it_is) {
  ConnectOptions options = must_read("host=/run/sockets dbname=a,b");
  EXPECT_FALSE(options.has_several_hosts());
  options.rotate_hosts();
  EXPECT_EQ(value(options, "host"), "/run/sockets");
  EXPECT_EQ(value(options, "dbname"), "a,b");
}

}  // namespace
}  // namespace pulse
