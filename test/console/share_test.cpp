// No client of pulse serve takes what another one needs, or guesses quickly; the log says who came.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <set>
#include <vector>

#include "base/http/stream.hpp"
#include "service/audit.hpp"
#include "service/late_answers.hpp"
#include "service/live.hpp"

namespace pulse::console {
namespace {

using namespace std::chrono_literals;

class LiveShareTest : public testing::Test {
 protected:
  ~LiveShareTest() override {
    live_.stop();
    site_.quick().stop();
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
      streams_.push_back(live_.listen(site_, route_, request(token, page)));
      return 0;
    } catch (const Failed& failed) {
      return failed.problem.status;
    }
  }

  Log log_{LogFormat::text, LogLevel::error, 2};
  Site site_{"", nullptr, {1, 0}, log_};
  Live live_{[](const Access& /*access*/) { return true; }};
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
    if (status == 0) continue;
    EXPECT_EQ(status, 429U);
    ++refused;
  }
  EXPECT_EQ(refused, 256U - 32U);
  EXPECT_EQ(listen("operator", 0), 0U);
}

TEST_F(LiveShareTest, without_tokens_all_pages_are_one_clients) {
  for (int page = 0; page < 256; ++page) EXPECT_EQ(listen("", page), 0U);
  EXPECT_EQ(listen("", 256), 503U);
}

TEST(LateAnswersTest, a_guess_waits_and_few_do_at_once) {
  constexpr auto kDelay = 50ms;
  const auto began = std::chrono::steady_clock::now();
  LateAnswers late(kDelay);
  std::promise<std::chrono::steady_clock::time_point> answered;
  ASSERT_TRUE(late.add([&] { answered.set_value(std::chrono::steady_clock::now()); }));
  EXPECT_GE(answered.get_future().get() - began, kDelay);
  LateAnswers crowd(1h);
  std::size_t given = 0;
  for (std::size_t i = 0; i < kMaxLate; ++i) EXPECT_TRUE(crowd.add([&] { ++given; }));
  EXPECT_FALSE(crowd.add([&] { ++given; })) << "the connections are for others";
  crowd.stop();
  EXPECT_EQ(given, kMaxLate) << "each that waits is answered when the server ends";
}

std::string line_of(const std::string& method, const std::string& path, unsigned status,
                    const std::string& forwarded_for = "") {
  std::string lines;
  Log log(LogFormat::text, LogLevel::info, [&](std::string_view line) { lines += line; });
  Request request;
  request.method = method;
  request.path = path;
  request.access.token = "ada";
  request.http.address = "10.0.0.7";
  request.http.headers["x-forwarded-for"] = forwarded_for;
  write_audit(log, request, status);
  log.close();
  return lines;
}

TEST(AuditTest, the_log_tells_who_came_from_where_and_what_came_of_it) {
  const auto has = [](const std::string& line, const std::string& words) {
    EXPECT_NE(line.find(words), std::string::npos) << line;
  };
  has(line_of("POST", "/login", 303), "info signed_in token=ada");
  has(line_of("POST", "/logout", 303), "info signed_out token=ada");
  has(line_of("POST", "/login", 401), "warning refused token=ada");
  has(line_of("POST", "/v1/jobs", 201),
      "info changed token=ada method=POST path=/v1/jobs status=201 address=10.0.0.7");
  for (const unsigned status : {401U, 403U, 421U, 429U}) {
    has(line_of("GET", "/jobs", status),
        "warning refused token=ada method=GET path=/jobs status=" + std::to_string(status));
  }
  EXPECT_EQ(line_of("GET", "/jobs", 200), "");
  EXPECT_EQ(line_of("GET", "/jobs", 404), "");
  EXPECT_LT(line_of("GET", std::string(30'000, 'x'), 401).size(), 400U);
}

TEST(AuditTest, the_log_tells_what_proxies_say_of_the_client) {
  const std::string line = line_of("POST", "/v1/jobs", 201, "1.2.3.4, 10.0.0.9");
  EXPECT_NE(line.find(R"(address=10.0.0.7 forwarded_for="1.2.3.4, 10.0.0.9")"), std::string::npos)
      << line;
  EXPECT_EQ(line_of("POST", "/v1/jobs", 201).find("forwarded_for"), std::string::npos);
  const std::string long_one = line_of("GET", "/", 401, std::string(30'000, 'x') + ", 1.2.3.4");
  EXPECT_LT(long_one.size(), 400U);
  EXPECT_NE(long_one.find(", 1.2.3.4"), std::string::npos) << "the nearest proxy is the last";
}

}  // namespace
}  // namespace pulse::console
