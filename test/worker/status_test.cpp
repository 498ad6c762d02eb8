// The status pages over a real socket.
#include "observe/status.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/loop/unique_fd.hpp"
#include "log_capture.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

UniqueFd connect_to(std::uint16_t port) {
  UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // Long enough for any machine; only a server that never answers takes it.
  const timeval patience{60, 0};
  setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  return client;
}

void say(const UniqueFd& client, std::string_view text) {
  EXPECT_EQ(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

// Until the server closes.
std::string hear(const UniqueFd& client) {
  std::string text;
  std::array<char, 4096> piece{};
  ssize_t length = 0;
  while ((length = read(client.get(), piece.data(), piece.size())) > 0) {
    text.append(piece.data(), static_cast<std::size_t>(length));
  }
  return text;
}

// Read by the server's thread.
class SharedClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(std::chrono::nanoseconds by) { now_ = now_.load() + by; }

 private:
  std::atomic<TimePoint> now_{TimePoint(1h)};
};

class StatusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started = Status::start({.port = 0}, {"pulse.example"}, clock_, capture_.log());
    ASSERT_TRUE(std::holds_alternative<std::unique_ptr<Status>>(started))
        << std::get<std::string>(started);
    status_ = std::move(std::get<std::unique_ptr<Status>>(started));
  }
  std::uint16_t port() const { return status_->address().port; }
  std::string ask(const std::string& request, const std::string& host = "127.0.0.1") const {
    const UniqueFd client = connect_to(port());
    say(client, request + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
    return hear(client);
  }
  static std::string head_of(const std::string& answer) { return answer.substr(0, 12); }

  SharedClock clock_;
  LogCapture capture_;
  std::unique_ptr<Status> status_;
};

TEST_F(StatusTest, livez_says_whether_the_loop_turns) {
  status_->publish({});
  EXPECT_EQ(head_of(ask("GET /livez")), "HTTP/1.1 200");
  clock_.advance(11s);
  EXPECT_EQ(head_of(ask("GET /livez")), "HTTP/1.1 503");
  status_->publish({});
  EXPECT_EQ(head_of(ask("GET /livez")), "HTTP/1.1 200");
}

TEST_F(StatusTest, readyz_says_why_not) {
  status_->publish({});
  const std::string answer = ask("GET /readyz");
  EXPECT_EQ(head_of(answer), "HTTP/1.1 503");
  EXPECT_NE(answer.find("\r\n\r\nnot registered\n"), std::string::npos) << answer;
}

TEST_F(StatusTest, metrics_has_the_content_type_of_its_format) {
  capture_.log().info("claimed", {{"task", "mail"}});
  const std::string answer = ask("GET /metrics");
  EXPECT_EQ(head_of(answer), "HTTP/1.1 200");
  EXPECT_NE(answer.find("Content-Type: text/plain; version=0.0.4"), std::string::npos) << answer;
  EXPECT_NE(answer.find("pulse_jobs_claimed_total{task=\"mail\"} 1\n"), std::string::npos);
}

TEST_F(StatusTest, other_pages_and_methods_are_refused) {
  const std::string answer = ask("GET /");
  EXPECT_EQ(head_of(answer), "HTTP/1.1 404");
  EXPECT_NE(answer.find("/livez\n/metrics\n/readyz\n"), std::string::npos) << answer;
  EXPECT_EQ(head_of(ask("GET /livez/../../etc/passwd")), "HTTP/1.1 404");
  EXPECT_EQ(head_of(ask("DELETE /metrics")), "HTTP/1.1 405");
  status_->publish({});
  EXPECT_EQ(head_of(ask("HEAD /livez")), "HTTP/1.1 200");
}

// A page of another origin asks by its own name, which it has made point at the worker.
TEST_F(StatusTest, only_addresses_localhost_and_given_names_are_answered) {
  for (const char* host : {"127.0.0.1", "10.1.2.3:9187", "[::1]:9187", "localhost:9187",
                           "Pulse.Example", "pulse.example:80"}) {
    EXPECT_EQ(head_of(ask("GET /metrics", host)), "HTTP/1.1 200") << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                           "[::1].evil.example", "127.0.0.1:evil", "[evil]", "[::1", ""}) {
    EXPECT_EQ(head_of(ask("GET /metrics", host)), "HTTP/1.1 421") << host;
  }
}

TEST_F(StatusTest, a_check_without_a_host_is_answered) {
  status_->publish({});
  const UniqueFd client = connect_to(port());
  say(client, "GET /livez HTTP/1.0\r\n\r\n");
  EXPECT_NE(hear(client).find(" 200 "), std::string::npos);
}

TEST_F(StatusTest, what_is_no_request_ends_its_connection_only) {
  for (const std::string& text : {std::string("\r\n\r\n\r\n"), std::string("\x16\x03\x01\x02", 4),
                                  "GET /livez HTTP/1.1\r\nX: " + std::string(100'000, 'x'),
                                  std::string(20'000, 'A') + "\r\n\r\n"}) {
    const UniqueFd client = connect_to(port());
    (void)!send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
    shutdown(client.get(), SHUT_WR);
    hear(client);
  }
  EXPECT_EQ(head_of(ask("GET /readyz")), "HTTP/1.1 503");
}

TEST_F(StatusTest, a_body_is_not_read_into_memory) {
  const UniqueFd client = connect_to(port());
  say(client,
      "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
      "Connection: close\r\n\r\n");
  say(client, std::string(100'000, 'x'));
  EXPECT_EQ(head_of(hear(client)), "HTTP/1.1 405");
}

TEST_F(StatusTest, whoever_asks_slowly_is_in_nobodys_way) {
  const UniqueFd slow = connect_to(port());
  say(slow, "GET /livez HTTP/1.1\r\nHo");
  const UniqueFd silent = connect_to(port());
  EXPECT_EQ(head_of(ask("GET /livez")), "HTTP/1.1 200");
}

// More than it serves at once.
TEST_F(StatusTest, a_crowd_that_says_nothing_is_hung_up_on) {
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 40; ++i) crowd.push_back(connect_to(port()));
  EXPECT_EQ(head_of(ask("GET /livez")), "HTTP/1.1 200");
}

// Each of them says a byte now and then, so that none is idle.
TEST_F(StatusTest, a_crowd_that_speaks_slowly_is_in_no_other_clients_way) {
  status_->publish({});
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 70; ++i) {
    crowd.push_back(connect_to(port()));
    (void)!send(crowd.back().get(), "GET /livez HTTP/1.1\r\nX: ", 24, MSG_NOSIGNAL);
  }
  std::promise<void> answered;
  std::thread speakers([&, until = answered.get_future()] {
    while (until.wait_for(100ms) == std::future_status::timeout) {
      for (const UniqueFd& client : crowd) (void)!send(client.get(), "x", 1, MSG_NOSIGNAL);
    }
  });
  const std::string answer = ask("GET /livez");
  answered.set_value();
  speakers.join();
  EXPECT_EQ(head_of(answer), "HTTP/1.1 200");
}

TEST_F(StatusTest, a_port_in_use_is_named) {
  LogCapture other;
  const auto second = Status::start(status_->address(), {}, clock_, other.log());
  const auto* problem = std::get_if<std::string>(&second);
  ASSERT_NE(problem, nullptr);
  EXPECT_EQ(*problem,
            "cannot listen at 127.0.0.1:" + std::to_string(port()) + ": Address already in use");
}

TEST_F(StatusTest, ipv6_is_served) {
  LogCapture other;
  const auto second = Status::start({.host = "::1", .port = 0}, {}, clock_, other.log());
  if (const auto* problem = std::get_if<std::string>(&second)) GTEST_SKIP() << *problem;
  EXPECT_NE(std::get<std::unique_ptr<Status>>(second)->address().port, 0);
}

}  // namespace
}  // namespace pulse
