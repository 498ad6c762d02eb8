// Whom pulse serve lets in: by its name, by a token, and by the cookie of a sign-in.
#include "admission/gate.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "admission/digest.hpp"
#include "no_descriptors.hpp"
#include "serve/problem.hpp"

namespace pulse::console {
namespace {

class GateTest : public testing::Test {
 protected:
  GateTest() {
    path_ = testing::TempDir() + "pulse_tokens_" + std::to_string(getpid());
    write(token_line({"ada", "a_role", sha256(secret_)}));
    gate_.emplace(read(), std::vector<std::string>{"pulse.example"});
  }
  ~GateTest() override { std::remove(path_.c_str()); }

  void write(const std::string& text) const { std::ofstream(path_) << text; }
  Tokens read() const { return std::get<Tokens>(Tokens::read(path_)); }

  static Request request(const std::string& method, const std::string& path,
                         std::map<std::string, std::string, std::less<>> headers = {}) {
    Request request;
    request.method = method;
    request.path = path;
    request.http.headers = std::move(headers);
    request.http.headers.try_emplace("host", "127.0.0.1:8440");
    return request;
  }

  // The status of what it throws; 0 for nothing.
  template <typename Call>
  static unsigned status_of(Call call) {
    try {
      call();
      return 0;
    } catch (const Failed& failed) {
      return failed.problem.status;
    }
  }

  std::string sign_in() {
    Request asked = request("POST", "/login");
    asked.form.add("token", secret_);
    const std::string cookie = cookie_in(gate_->sign_in(asked));
    return cookie.substr(0, cookie.find(';'));
  }

  static std::string cookie_in(const Response& response) {
    for (const auto& [name, value] : response.headers) {
      if (name == "Set-Cookie") return value;
    }
    return {};
  }

  // Of a visitor with this cookie; throws Failed for one that counts for nothing.
  static Access access_with(Gate& gate, const std::string& cookie) {
    return gate.admit(request("GET", "/", {{"cookie", cookie}}), Need::read);
  }
  static unsigned status_with(Gate& gate, const std::string& cookie) {
    return status_of([&] { access_with(gate, cookie); });
  }

  const std::string secret_ = random_secret();
  std::string path_;
  std::optional<Gate> gate_;
};

TEST_F(GateTest, only_addresses_localhost_and_given_names_are_hosts) {
  const auto status = [&](const std::string& host) {
    return status_of([&] { gate_->check_host(request("GET", "/", {{"host", host}})); });
  };
  for (const char* host : {"127.0.0.1", "127.0.0.1:80", "[::1]:80", "localhost:1", "LOCALHOST",
                           "10.1.2.3", "pulse.example", "Pulse.Example:443"}) {
    EXPECT_EQ(status(host), 0U) << host;
  }
  EXPECT_EQ(status("evil.example"), 421U);
  EXPECT_EQ(status("localhost.evil.example"), 421U);
  EXPECT_EQ(status("127.0.0.1.evil.example"), 421U);
  EXPECT_EQ(status("[::1].evil.example"), 421U);
  EXPECT_EQ(status("127.0.0.1:evil"), 421U);
  EXPECT_EQ(status(""), 400U);
}

TEST_F(GateTest, a_token_is_needed_where_there_are_tokens) {
  EXPECT_EQ(status_of([&] { gate_->admit(request("GET", "/"), Need::read); }), 401U);
  EXPECT_EQ(status_of([&] { gate_->admit(request("GET", "/"), Need::nothing); }), 0U);
  const auto with = [&](const std::string& value) {
    return request("POST", "/v1/jobs", {{"authorization", value}});
  };
  const Access access = gate_->admit(with("Bearer " + secret_), Need::act);
  EXPECT_EQ(access.token, "ada");
  EXPECT_EQ(access.role, "a_role");
  EXPECT_TRUE(access.sees_payloads());
  const std::vector<std::string> wrong{"Bearer " + random_secret(), "Bearer ", "Basic " + secret_,
                                       "Bearer " + sha256(secret_), secret_};
  for (const std::string& value : wrong) {
    EXPECT_EQ(status_of([&] { gate_->admit(with(value), Need::act); }), 401U) << value;
  }
}

TEST_F(GateTest, without_a_free_descriptor_the_tokens_from_before_count_for_a_minute) {
  Tokens tokens = read();
  {
    const NoDescriptors none;
    const auto now = Tokens::Clock::now();
    EXPECT_TRUE(tokens.find_secret(secret_, now + std::chrono::seconds(55)));
    EXPECT_FALSE(tokens.find_secret(secret_, now + std::chrono::seconds(65)));
  }
  const std::string problem = tokens.new_problem().value_or("none");
  EXPECT_TRUE(problem.ends_with("Too many open files")) << problem;
}

TEST_F(GateTest, without_tokens_all_may_look_and_none_may_act) {
  Gate open(std::get<Tokens>(Tokens::read("")), {});
  const Access access = open.admit(request("GET", "/"), Need::read);
  EXPECT_FALSE(access.has_token());
  EXPECT_FALSE(access.sees_payloads());
  EXPECT_EQ(status_of([&] { open.admit(request("POST", "/x"), Need::act); }), 403U);
}

TEST_F(GateTest, a_form_is_taken_only_with_the_secret_of_its_sign_in) {
  const std::string cookie = sign_in();
  EXPECT_TRUE(cookie.starts_with("pulse_8440=")) << cookie;
  const Access access =
      gate_->admit(request("GET", "/", {{"cookie", "other=1; " + cookie}}), Need::read);
  EXPECT_EQ(access.token, "ada");
  Request form = request("POST", "/jobs/1/retry", {{"cookie", cookie}});
  EXPECT_EQ(status_of([&] { gate_->admit(form, Need::act); }), 403U);
  form.form.add("csrf", random_secret());
  EXPECT_EQ(status_of([&] { gate_->admit(form, Need::act); }), 403U);
  Request good = request("POST", "/jobs/1/retry", {{"cookie", cookie}});
  good.form.add("csrf", access.csrf);
  EXPECT_EQ(status_of([&] { gate_->admit(good, Need::act); }), 0U);
  good.http.headers["origin"] = "http://evil.example";
  EXPECT_EQ(status_of([&] { gate_->admit(good, Need::act); }), 403U);
  good.http.headers["origin"] = "null";
  EXPECT_EQ(status_of([&] { gate_->admit(good, Need::act); }), 403U);
  good.http.headers["origin"] = "http://127.0.0.1:8440";
  EXPECT_EQ(status_of([&] { gate_->admit(good, Need::act); }), 0U);
  good.http.headers["sec-fetch-site"] = "cross-site";
  EXPECT_EQ(status_of([&] { gate_->admit(good, Need::act); }), 403U);
}

// As where a proxy adds the token to what browsers send.
TEST_F(GateTest, a_token_makes_no_form_of_another_site_count) {
  Request form = request("POST", "/jobs/1/retry", {{"authorization", "Bearer " + secret_}});
  EXPECT_EQ(status_of([&] { gate_->admit(form, Need::act); }), 0U);
  form.http.headers["origin"] = "http://evil.example";
  EXPECT_EQ(status_of([&] { gate_->admit(form, Need::act); }), 403U);
  form.http.headers["origin"] = "http://127.0.0.1:8440";
  form.http.headers["sec-fetch-site"] = "same-site";
  EXPECT_EQ(status_of([&] { gate_->admit(form, Need::act); }), 403U);
}

class OriginGateTest : public GateTest {
 protected:
  static Origin origin(const std::string& address) {
    return std::get<Origin>(parse_origin(address));
  }
  // The cookie that a sign-in at this address gets.
  std::string cookie_at(const std::string& address) {
    Gate gate(read(), {}, origin(address));
    Request asked = request("POST", "/login");
    asked.form.add("token", secret_);
    return cookie_in(gate.sign_in(asked));
  }
  // What a sign-in with these headers is refused with; empty for one that is not.
  static std::string refusal(Gate& gate, std::map<std::string, std::string, std::less<>> headers) {
    try {
      Request asked = request("POST", "/login", std::move(headers));
      asked.form.add("token", "nonsense");
      gate.sign_in(asked);
      return {};
    } catch (const Failed& failed) {
      return failed.problem.status == 403U ? failed.problem.detail : "";
    }
  }
};

TEST_F(OriginGateTest, the_origin_is_what_a_form_comes_from_whatever_the_host_is) {
  Gate gate(read(), {}, origin("https://ops.example.com:8443/queue"));
  for (const char* host : {"127.0.0.1:8440", "ops.example.com", "ops.example.com:8443"}) {
    EXPECT_EQ(refusal(gate, {{"host", host}, {"origin", "https://ops.example.com:8443"}}), "");
    EXPECT_EQ(status_of([&] { gate.check_host(request("GET", "/", {{"host", host}})); }), 0U);
  }
  for (const char* other : {"https://ops.example.com", "http://ops.example.com:8443",
                            "https://evil.example:8443", "http://127.0.0.1:8440"}) {
    EXPECT_NE(refusal(gate, {{"host", "127.0.0.1:8440"}, {"origin", other}}), "") << other;
  }
  EXPECT_EQ(status_of([&] {
              gate.check_host(request("GET", "/", {{"host", "evil.example"}}));
            }),
            421U);
}

TEST_F(OriginGateTest, a_refusal_names_the_header_and_both_values) {
  Gate gate(read(), {}, origin("https://ops.example.com/queue"));
  EXPECT_EQ(refusal(gate, {{"origin", "https://ops.example.com:8443"}}),
            "the form is from another address: the header Origin is "
            "https://ops.example.com:8443, and --origin is https://ops.example.com/queue");
  EXPECT_EQ(
      refusal(*gate_, {{"host", "ops.example.com"}, {"origin", "https://ops.example.com:8443"}}),
      "the form is from another address: the header Origin is "
      "https://ops.example.com:8443, and the header Host is ops.example.com");
  EXPECT_EQ(refusal(*gate_, {{"sec-fetch-site", "cross-site"}}),
            "the form is from a page of another site: the header Sec-Fetch-Site is cross-site, "
            "and has to be same-origin");
}

TEST_F(OriginGateTest, over_tls_the_cookie_is_of_the_host_alone) {
  const std::string cookie = cookie_at("https://ops.example.com/queue");
  EXPECT_TRUE(cookie.starts_with("__Host-pulse-")) << cookie;
  EXPECT_TRUE(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=43200"));
  const std::string plain = cookie_at("http://ops.example.com/queue");
  EXPECT_TRUE(plain.starts_with("pulse-")) << plain;
  EXPECT_EQ(plain.find("Secure"), std::string::npos) << plain;
}

TEST_F(OriginGateTest, two_servers_of_one_host_have_two_cookies) {
  const auto name = [&](const std::string& address) {
    const std::string cookie = cookie_at(address);
    return cookie.substr(0, cookie.find('='));
  };
  EXPECT_EQ(name("https://ops.example.com/queue"), name("https://OPS.example.com:443/queue/"));
  EXPECT_NE(name("https://ops.example.com/queue"), name("https://ops.example.com/other"));
  EXPECT_NE(name("https://ops.example.com/queue"), name("https://ops.example.com:8443/queue"));
}

TEST(OriginTest, an_address_is_an_origin_and_a_prefix) {
  const auto parts = [](const char* address) {
    const auto parsed = parse_origin(address);
    const auto* origin = std::get_if<Origin>(&parsed);
    return origin == nullptr ? "" : origin->text + ' ' + origin->host + ' ' + origin->prefix;
  };
  EXPECT_EQ(parts("https://ops.example.com/queue"),
            "https://ops.example.com ops.example.com /queue");
  EXPECT_EQ(parts("HTTPS://OPS.Example.com:443/"), "https://ops.example.com ops.example.com ");
  EXPECT_EQ(parts("http://10.0.0.7:8080/a/b~c/"), "http://10.0.0.7:8080 10.0.0.7 /a/b~c");
  EXPECT_EQ(parts("http://[::1]:80/Queue"), "http://[::1] ::1 /Queue");
  for (const char* address :
       {"", "ops.example.com", "ftp://ops.example.com", "https://", "https:///queue",
        "https://ops.example.com:", "https://ops.example.com:x", "https://a@ops.example.com",
        "https://ops.example.com/queue?a", "https://ops.example.com/queue#a",
        "https://ops.example.com//queue", "https://ops.example.com/a/../b",
        "https://ops.example.com/.", "https://ops.example.com/a b", "https://ops.example.com/%71",
        "https://ops.example.com/\"", "https://öps.example.com"}) {
    EXPECT_EQ(parts(address), "") << address;
  }
}

TEST_F(GateTest, signing_out_takes_the_cookie_from_the_browser) {
  const std::string cookie = sign_in();
  const std::string taken =
      cookie_in(gate_->sign_out(request("POST", "/logout", {{"cookie", cookie}})));
  EXPECT_TRUE(taken.starts_with("pulse_8440=; Path=/; ")) << taken;
  EXPECT_TRUE(taken.ends_with("; Max-Age=0")) << taken;
}

TEST_F(GateTest, a_link_of_another_site_brings_the_cookie_along) {
  Request asked = request("POST", "/login");
  asked.form.add("token", secret_);
  const std::string cookie = cookie_in(gate_->sign_in(asked));
  EXPECT_TRUE(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=43200")) << cookie;
}

TEST_F(GateTest, another_server_with_the_same_file_takes_cookie_and_forms) {
  const std::string cookie = sign_in();
  const std::string csrf = access_with(*gate_, cookie).csrf;
  Gate other(read(), {});
  EXPECT_EQ(access_with(other, cookie).token, "ada");
  Request form = request("POST", "/jobs/1/retry", {{"cookie", cookie}});
  form.form.add("csrf", csrf);
  EXPECT_EQ(status_of([&] { other.admit(form, Need::act); }), 0U);
}

TEST_F(GateTest, only_the_own_line_of_the_file_ends_a_sign_in) {
  const std::string cookie = sign_in();
  const Access access = access_with(*gate_, cookie);
  const auto with_file = [&](const std::string& text) {
    write(text);
    Gate gate(read(), {});
    return std::pair(status_with(gate, cookie), gate.still_admits(access));
  };
  const std::string ada = token_line({"ada", "a_role", sha256(secret_)});
  const std::string bob = token_line({"bob", "a_role", sha256("x")});
  const std::pair kCounts(0U, true);
  const std::pair kEnded(401U, false);
  EXPECT_EQ(with_file(bob + ada), kCounts) << "a token more";
  EXPECT_EQ(with_file("# people\n" + ada), kCounts) << "a token less";
  EXPECT_EQ(with_file(bob), kEnded) << "its own line is out";
  EXPECT_EQ(with_file(token_line({"ada", "a_role", sha256("x")})), kEnded) << "a new token";
  EXPECT_EQ(with_file(token_line({"ada", "another", sha256(secret_)})), kEnded) << "a new role";
  EXPECT_EQ(with_file(token_line({"ann", "a_role", sha256(secret_)})), kEnded) << "a new name";
}

TEST_F(GateTest, a_sign_in_leads_to_paths_of_this_server_only) {
  const auto place = [&](const std::string& next) {
    Request asked = request("POST", "/login");
    asked.form.add("token", secret_);
    asked.form.add("next", next);
    return gate_->sign_in(asked).headers.front().second;
  };
  EXPECT_EQ(place("/jobs/7?a=b"), "/jobs/7?a=b");
  for (const char* next : {"//evil.example", "http://evil.example", "/\\evil.example", "/a\r\nX: y",
                           "javascript:alert(1)", ""}) {
    EXPECT_EQ(place(next), "/") << next;
  }
  Request wrong = request("POST", "/login");
  wrong.form.add("token", "nonsense");
  EXPECT_EQ(status_of([&] { gate_->sign_in(wrong); }), 401U);
}

}  // namespace
}  // namespace pulse::console
