// What libpq is for the worker, on real sockets.
#include "base/postgres/connection.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <thread>
#include <vector>

#include "base/loop/unique_fd.hpp"
#include "base/postgres/pipeline.hpp"
#include "base/postgres/reconnect.hpp"
#include "base/postgres/session.hpp"
#include "log_capture.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

// A server that takes each connection and hangs up.
class Listener {
 public:
  Listener() {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
    EXPECT_EQ(listen(socket_.get(), 8), 0);
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&place), &size);
    port_ = std::to_string(ntohs(place.sin_port));
  }
  const std::string& port() const { return port_; }
  UniqueFd accept() const { return UniqueFd(::accept(socket_.get(), nullptr, nullptr)); }
  void shut_down() const { shutdown(socket_.get(), SHUT_RDWR); }

 private:
  UniqueFd socket_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string port_;
};

TEST(Connection, a_host_that_takes_connections_and_closes_them_is_left_for_the_next) {
  const Listener broken;
  const Listener healthy;
  std::thread breaking([&] {
    while (broken.accept().valid()) {
    }
  });
  const SystemClock clock;
  EventLoop loop(clock);
  std::thread serving([&] {
    const UniqueFd client = healthy.accept();
    loop.post([&] { loop.stop(); });
  });
  LogCapture capture;
  auto options = ConnectOptions::read("host=127.0.0.1,127.0.0.1 port=" + broken.port() + "," +
                                          healthy.port() + " sslmode=disable user=x dbname=x",
                                      "test");
  const auto connection = make_connection(loop, std::get<ConnectOptions>(std::move(options)));
  Session session({}, *connection, loop.timers(), Reconnect([] { return 0.1; }, 100ms),
                  capture.log());
  bool is_late = false;
  Timer limit(loop.timers(), [&] {
    is_late = true;
    loop.stop();
  });
  limit.start_in(30s);
  session.open();
  loop.run();
  EXPECT_FALSE(is_late) << "the second host was never asked";
  session.close();
  broken.shut_down();
  healthy.shut_down();
  breaking.join();
  serving.join();
}

// Lets each client in, answers none of its statements, and leaves cancellations waiting.
void let_in(const Listener& listener, std::vector<UniqueFd>& clients) {
  using namespace std::string_literals;
  constexpr std::uint32_t kCancel = 80877102;
  for (UniqueFd client = listener.accept(); client.valid(); client = listener.accept()) {
    std::array<std::uint32_t, 2> head{};  // the length, and what is wanted
    recv(client.get(), head.data(), sizeof head, MSG_WAITALL);
    const std::string welcome =
        "R\0\0\0\10\0\0\0\0"s + "K\0\0\0\14\0\0\0\1\0\0\0\2"s + "Z\0\0\0\5I"s;
    if (ntohl(head[1]) != kCancel) send(client.get(), welcome.data(), welcome.size(), MSG_NOSIGNAL);
    clients.push_back(std::move(client));
  }
}

TEST(Connection, cancellations_that_nobody_answers_keep_no_next_connection_away) {
  const Listener server;
  std::vector<UniqueFd> clients;
  std::thread serving([&] { let_in(server, clients); });
  const SystemClock clock;
  EventLoop loop(clock);
  auto options = ConnectOptions::read(
      "host=127.0.0.1 sslmode=disable gssencmode=disable target_session_attrs=any user=x dbname=x"
      " port=" +
          server.port(),
      "test");
  const auto connection = make_connection(loop, std::get<ConnectOptions>(std::move(options)));
  std::string failure = "none";
  const auto open = [&] {
    connection->open([&](const std::variant<Opened, OpenFailure>& outcome) {
      const auto* refused = std::get_if<OpenFailure>(&outcome);
      failure = refused != nullptr ? refused->reason : "";
      loop.stop();
    });
    loop.run();
  };
  open();
  ASSERT_EQ(failure, "");
  connection->execute({{{"wait", "SELECT"}, {}}}, Commit::each, [](const Replies&) {});
  for (int i = 0; i < 50; ++i) connection->cancel();
  connection->close();
  open();
  EXPECT_EQ(failure, "");
  connection->close();
  server.shut_down();
  serving.join();
}

TEST(Connection, options_that_libpq_refuses_are_refused_for_good) {
  for (const char* option : {"sslmode=nonsense", "service=nonsense", "host=/nonsense"}) {
    const SystemClock clock;
    EventLoop loop(clock);
    auto options = ConnectOptions::read(std::string("dbname=x user=x ") + option, "test");
    const auto connection = make_connection(loop, std::get<ConnectOptions>(std::move(options)));
    std::optional<OpenFailure> failure;
    connection->open([&](std::variant<Opened, OpenFailure> outcome) {
      failure = std::get<OpenFailure>(outcome);
      loop.stop();
    });
    loop.run();
    ASSERT_TRUE(failure) << option;
    EXPECT_NE(failure->reason.find("nonsense"), std::string::npos) << failure->reason;
    EXPECT_EQ(failure->is_permanent, std::string_view(option) != "host=/nonsense") << option;
  }
}

// libpq makes such results itself, for want of memory.
TEST(Connection, an_error_that_is_no_servers_is_a_lost_reply) {
  PGresult* own = PQmakeEmptyPGresult(nullptr, PGRES_FATAL_ERROR);
  EXPECT_TRUE(ends_the_session(own));
  PQclear(own);
  PGresult* rows = PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK);
  EXPECT_FALSE(ends_the_session(rows));
  PQclear(rows);
}

}  // namespace
}  // namespace pulse
