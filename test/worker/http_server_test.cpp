// The server of HTTP over real sockets: answers that come later, streams, and clients that go.
#include "base/http/server.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <future>

#include "base/loop/unique_fd.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

class HttpServerTest : public testing::Test {
 protected:
  using Exchange = std::shared_ptr<HttpExchange>;

  void start(HttpServer::Handler handler, HttpLimits limits = {}) {
    auto started = HttpServer::start({}, limits, std::move(handler));
    ASSERT_TRUE(std::holds_alternative<std::unique_ptr<HttpServer>>(started));
    server_ = std::move(std::get<std::unique_ptr<HttpServer>>(started));
  }

  // Each request is left here.
  void start_and_keep(HttpLimits limits = {}) {
    start([this](const Exchange& exchange) { kept_.set_value(exchange); }, limits);
  }

  UniqueFd ask(std::string_view text) const {
    UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(server_->address().port);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{60, 0};
    setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
    EXPECT_EQ(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    return client;
  }

  // Until the text is there, or the server hangs up.
  static std::string hear(const UniqueFd& client, std::string_view wanted) {
    std::string text;
    std::array<char, 4096> piece{};
    while (text.find(wanted) == std::string::npos) {
      const ssize_t length = read(client.get(), piece.data(), piece.size());
      if (length <= 0) break;
      text.append(piece.data(), static_cast<std::size_t>(length));
    }
    return text;
  }

  // Once: by the handler, which says the word, or by a library that is stricter, with 400.
  static bool is_refused(const std::string& said, std::string_view word) {
    return said.rfind("HTTP/1.1 ") == 0 &&
           (said.ends_with(word) || said.starts_with("HTTP/1.1 400 "));
  }

  Exchange next() { return kept_.get_future().get(); }

  static constexpr std::string_view kGet = "GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n";
  static constexpr std::string_view kNowhere = "is not there";

  std::promise<Exchange> kept_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, an_answer_may_come_later_from_another_thread) {
  start_and_keep();
  const UniqueFd client =
      ask("PUT /a?b HTTP/1.1\r\nHost: x\r\nX-Y: z\r\nContent-Length: 0\r\n\r\n");
  const Exchange exchange = next();
  EXPECT_EQ(exchange->request.method, "PUT");
  EXPECT_EQ(exchange->request.target, "/a?b");
  EXPECT_EQ(exchange->request.header("x-y"), "z");
  EXPECT_FALSE(exchange->is_client_gone());
  HttpResponse response;
  response.status = 201;
  response.body = "later";
  exchange->answer(std::move(response));
  const std::string said = hear(client, "later");
  EXPECT_TRUE(said.starts_with("HTTP/1.1 201 ")) << said;
}

TEST_F(HttpServerTest, a_client_that_goes_is_noticed_before_the_answer) {
  start_and_keep();
  UniqueFd client = ask(kGet);
  const Exchange exchange = next();
  client.reset();
  while (!exchange->is_client_gone()) std::this_thread::yield();
  exchange->answer({});
}

// The library under it would take 64 bytes for each, of the eight thousand that there are.
TEST_F(HttpServerTest, a_query_may_have_any_number_of_parameters) {
  start([](const Exchange& exchange) { exchange->answer({.body = exchange->request.target}); });
  std::string query = "/a?";
  for (int i = 0; i < 1000; ++i) query += "b=c&";
  const UniqueFd client = ask("GET " + query + " HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(hear(client, query).find("HTTP/1.1 200 OK"), std::string::npos);
}

TEST_F(HttpServerTest, a_body_is_read_to_its_limit) {
  HttpLimits limits;
  limits.max_body_bytes = 4;
  start(
      [](const Exchange& exchange) {
        HttpResponse response;
        response.body = exchange->request.is_too_large ? "large." : exchange->request.body + '.';
        exchange->answer(std::move(response));
      },
      limits);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ";
  EXPECT_NE(hear(ask(head + "4\r\n\r\nabcd"), "abcd.").find("abcd."), std::string::npos);
  EXPECT_NE(hear(ask(head + "5\r\n\r\nabcde"), "large.").find("large."), std::string::npos);
}

TEST_F(HttpServerTest, a_header_that_comes_twice_is_ambiguous_where_programs_would_differ) {
  start([](const Exchange& exchange) {
    HttpResponse response;
    response.body = exchange->request.is_ambiguous ? "ambiguous." : "clear.";
    exchange->answer(std::move(response));
  });
  EXPECT_NE(hear(ask("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"), "ambiguous.").find("ambig"),
            std::string::npos);
  EXPECT_TRUE(
      is_refused(hear(ask("GET / HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\n"), "ambiguous."),
                 "ambiguous."));
  EXPECT_NE(hear(ask("GET / HTTP/1.1\r\nHost: x\r\nA: 1\r\nA: 2\r\n\r\n"), "clear.").find("clear"),
            std::string::npos);
  const std::string hidden(kGet);
  const std::string said =
      hear(ask("DELETE / HTTP/1.1\r\nHost: x\r\nContent-Length : 30\r\n\r\n" + hidden), kNowhere);
  EXPECT_TRUE(is_refused(said, "ambiguous.")) << "and its body is no second request: " << said;
}

TEST_F(HttpServerTest, a_body_in_another_coding_is_answered_before_it_is_read) {
  HttpLimits limits;
  limits.max_body_bytes = 4;
  start(
      [](const Exchange& exchange) {
        HttpResponse response;
        response.body = exchange->request.is_coded ? "coded." : exchange->request.body + '.';
        exchange->answer(std::move(response));
      },
      limits);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ";
  for (const char* coding : {"identity", "gzip, chunked", "gzip"}) {
    const std::string said = hear(ask(head + coding + "\r\n\r\n2\r\nab\r\n0\r\n\r\n"), kNowhere);
    EXPECT_TRUE(is_refused(said, "coded.")) << coding << ": " << said;
  }
  const std::string chunked = "Chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
  const std::string said = hear(ask(head + chunked), "ab.");
  EXPECT_TRUE(said.ends_with("ab.")) << said;
}

TEST_F(HttpServerTest, a_stream_carries_what_is_sent_until_it_is_closed) {
  auto stream = std::make_shared<HttpStream>();
  start([stream](const Exchange& exchange) {
    HttpResponse response;
    response.stream = stream;
    exchange->answer(std::move(response));
  });
  const UniqueFd client = ask(kGet);
  for (const char* text : {"one", "two", "three"}) {
    EXPECT_TRUE(stream->send(text));
    EXPECT_NE(hear(client, text).find(text), std::string::npos);
  }
  stream->close();
  EXPECT_NE(hear(client, "0\r\n\r\n").find("0\r\n"), std::string::npos) << "the end";
  EXPECT_FALSE(stream->send("four"));
}

TEST_F(HttpServerTest, a_stream_drops_a_client_that_does_not_read) {
  auto stream = std::make_shared<HttpStream>();
  start([stream](const Exchange& exchange) {
    HttpResponse response;
    response.stream = stream;
    exchange->answer(std::move(response));
  });
  const UniqueFd client = ask(kGet);
  ASSERT_TRUE(stream->send("begun"));
  hear(client, "begun");
  const std::string text(100'000, 'x');
  int sent = 0;
  while (stream->send(text) && sent < 1'000) ++sent;
  EXPECT_LT(sent, 1'000);
}

TEST_F(HttpServerTest, a_stream_hears_that_its_client_has_gone) {
  auto stream = std::make_shared<HttpStream>();
  start([stream](const Exchange& exchange) {
    HttpResponse response;
    response.stream = stream;
    exchange->answer(std::move(response));
  });
  UniqueFd client = ask(kGet);
  ASSERT_TRUE(stream->send("begun"));
  hear(client, "begun");
  client.reset();
  while (stream->send(":\n\n")) std::this_thread::yield();
}

TEST_F(HttpServerTest, its_end_answers_what_is_left_and_ends_streams) {
  auto stream = std::make_shared<HttpStream>();
  std::promise<Exchange> kept;
  start([&](const Exchange& exchange) {
    if (exchange->request.target == "/stream") {
      HttpResponse response;
      response.stream = stream;
      exchange->answer(std::move(response));
    } else {
      kept.set_value(exchange);
    }
  });
  const UniqueFd listening = ask("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  stream->send("begun");
  hear(listening, "begun");
  const UniqueFd waiting = ask(kGet);
  const Exchange exchange = kept.get_future().get();
  server_.reset();
  exchange->answer({});
  EXPECT_FALSE(stream->send("more"));
  hear(listening, kNowhere);
  hear(waiting, kNowhere);
}

TEST_F(HttpServerTest, an_answer_that_was_given_is_sent_before_the_end) {
  start_and_keep();
  const UniqueFd client = ask(kGet);
  const Exchange exchange = next();
  HttpResponse response;
  response.body = std::string(8'000'000, 'x') + "whole";
  std::thread ending([&] {
    exchange->answer(std::move(response));
    server_.reset();
  });
  EXPECT_TRUE(hear(client, "whole").ends_with("whole"));
  ending.join();
}

TEST_F(HttpServerTest, a_head_has_its_time_in_all_and_an_idle_connection_as_much) {
  HttpLimits limits;
  limits.head_time = 200ms;
  start([](const Exchange& exchange) { exchange->answer({}); }, limits);
  EXPECT_EQ(hear(ask("GET / HT"), kNowhere), "");
  const std::string said = hear(ask(kGet), kNowhere);
  EXPECT_TRUE(said.starts_with("HTTP/1.1 200 ")) << "and then the server hung up: " << said;
}

}  // namespace
}  // namespace pulse
