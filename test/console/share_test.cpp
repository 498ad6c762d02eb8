// No client of pulse serve takes what another one needs.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "admission/sign_ins.hpp"
#include "http/http_stream.hpp"
#include "service/live.hpp"

namespace pulse::console {
namespace {

using namespace std::chrono_literals;

TEST(SignInsTest, a_token_signs_out_no_visitor_of_another) {
  SignIns sign_ins;
  const std::string operators = sign_ins.add("operator");
  const std::string first = sign_ins.add("worker");
  std::string last;
  for (int i = 0; i < 1'500; ++i) last = sign_ins.add("worker");
  EXPECT_TRUE(sign_ins.find(operators));
  EXPECT_TRUE(sign_ins.find(last));
  EXPECT_FALSE(sign_ins.find(first)) << "its own oldest has to sign in again";
}

TEST(SignInsTest, of_very_many_tokens_the_busiest_makes_room) {
  SignIns sign_ins;
  const std::string operators = sign_ins.add("operator");
  for (int token = 0; token < 100; ++token) {
    for (int i = 0; i < 20; ++i) sign_ins.add("token " + std::to_string(token));
  }
  EXPECT_TRUE(sign_ins.find(operators));
}

class LiveShareTest : public testing::Test {
 protected:
  ~LiveShareTest() override {
    live_.stop();
    pool_.stop();
  }

  Request request(const std::string& token, int page) const {
    Request asked;
    asked.access = {.token = token, .hash = token, .role = "a_role"};
    asked.http.target = "/live/overview?page=" + std::to_string(page);
    return asked;
  }
  // The status of the refusal; 0 where the page listens.
  unsigned listen(const std::string& token, int page) {
    try {
      streams_.push_back(live_.listen(route_, request(token, page)));
      return 0;
    } catch (const Failed& failed) {
      return failed.problem.status;
    }
  }

  ThreadPool pool_{1, 0, [] { return LentSession(Database(ConnectOptions()), "0"); }};
  Live live_{pool_, [](const Access& /*access*/) { return true; },
             [](const std::string& /*reason*/) {}};
  const Route route_{.method = "GET",
                     .pattern = "/live/overview",
                     .producer = [](const Request& /*request*/) { return std::string(); },
                     .interval = 1h};
  std::vector<std::shared_ptr<HttpStream>> streams_;
};

TEST_F(LiveShareTest, a_token_leaves_live_pages_to_others) {
  unsigned refused = 0;
  for (int page = 0; page < 256; ++page) {
    const unsigned status = listen("observer", page);
    if (status != 0) EXPECT_EQ(status, 429U);
    if (status != 0) ++refused;
  }
  EXPECT_EQ(refused, 256U - 32U);
  EXPECT_EQ(listen("operator", 0), 0U);
}

TEST_F(LiveShareTest, without_tokens_all_pages_are_one_clients) {
  for (int page = 0; page < 256; ++page) EXPECT_EQ(listen("", page), 0U);
  EXPECT_EQ(listen("", 256), 503U);
}

}  // namespace
}  // namespace pulse::console
