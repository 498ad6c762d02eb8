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

#include "admission/cookie.hpp"
#include "admission/digest.hpp"
#include "admission/seal.hpp"
#include "admission/sign_in.hpp"

namespace pulse::console {
namespace {

using std::chrono::sys_seconds;
using namespace std::chrono_literals;

constexpr sys_seconds kEnd(1'800'000'000s);

class SignInTest : public testing::Test {
 protected:
  bool is_read(const std::string& cookie, const TokenList& tokens, sys_seconds now = kEnd - 1s) {
    return read_sign_in(cookie, tokens, now).has_value();
  }

  const std::string secret_ = random_secret();
  const Token ada_{"ada", "a_role", sha256(secret_)};
  const Token bob_{"bob", "a_role", sha256("x")};
  const std::string cookie_ = make_sign_in(ada_, secret_, kEnd);
};

TEST_F(SignInTest, a_cookie_counts_for_its_token_until_its_end) {
  const auto sign_in = read_sign_in(cookie_, {bob_, ada_}, kEnd - 1s);
  ASSERT_TRUE(sign_in);
  EXPECT_EQ(sign_in->token.name, "ada");
  EXPECT_FALSE(is_read(cookie_, {bob_, ada_}, kEnd)) << "it has ended";
}

TEST_F(SignInTest, no_part_of_a_cookie_can_be_changed) {
  for (std::size_t i = 0; i < cookie_.size(); ++i) {
    std::string changed = cookie_;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_FALSE(is_read(changed, {ada_})) << "at " << i;
  }
  std::string later = cookie_;
  later.replace(later.find('.') + 1, 10, "1900000000");
  EXPECT_FALSE(is_read(later, {ada_})) << "it would last longer";
}

TEST_F(SignInTest, what_is_no_cookie_of_a_sign_in_counts_for_nothing) {
  const std::string mark = cookie_.substr(0, cookie_.find('.'));
  for (const std::string& text :
       {std::string(), std::string("."), std::string(".."), mark, mark + ".1800000000.",
        mark + ".1800000000.zz", mark + ".1800000000.abc", mark + "..", mark + ".x.00",
        mark + ".99999999999999999999.00", cookie_ + "00", cookie_.substr(0, cookie_.size() - 2)}) {
    EXPECT_FALSE(is_read(text, {ada_})) << text;
  }
}

// Whoever reads the file knows the key; the secret is what the reader lacks.
TEST_F(SignInTest, a_reader_of_the_file_makes_no_cookie) {
  EXPECT_FALSE(is_read(make_sign_in(ada_, "", kEnd), {ada_}));
  EXPECT_FALSE(is_read(make_sign_in(ada_, ada_.hash, kEnd), {ada_}));
  EXPECT_FALSE(is_read(make_sign_in(ada_, "x", kEnd), {ada_, bob_}));
}

TEST_F(SignInTest, a_reader_of_a_cookie_learns_nothing_of_its_token) {
  for (const std::string& text : {secret_, ada_.hash, hexadecimal(secret_), ada_.name}) {
    EXPECT_EQ(cookie_.find(text), std::string::npos) << text;
  }
  EXPECT_NE(cookie_, make_sign_in(ada_, secret_, kEnd)) << "two sign-ins differ";
}

TEST_F(SignInTest, forms_of_one_sign_in_are_not_those_of_another) {
  const auto csrf = [&](const std::string& cookie) {
    return read_sign_in(cookie, {ada_}, kEnd - 1s)->csrf;
  };
  EXPECT_EQ(csrf(cookie_), csrf(cookie_)) << "the same from every server";
  EXPECT_NE(csrf(cookie_), csrf(make_sign_in(ada_, secret_, kEnd)));
  EXPECT_EQ(cookie_.find(csrf(cookie_)), std::string::npos);
}

TEST(SealTest, only_its_key_opens_it_with_what_is_beside_it) {
  const std::string key(32, 'k');
  const std::string sealed = seal(key, "a text", "beside");
  EXPECT_EQ(open_seal(key, sealed, "beside"), "a text");
  EXPECT_EQ(open_seal(std::string(32, 'K'), sealed, "beside"), std::nullopt);
  EXPECT_EQ(open_seal(key, sealed, "Beside"), std::nullopt);
  EXPECT_EQ(open_seal(key, sealed.substr(1), "beside"), std::nullopt);
  EXPECT_EQ(open_seal(key, "short", "beside"), std::nullopt);
  EXPECT_EQ(open_seal(key, seal(key, "", ""), ""), "");
}

// RFC 4231, test case 2.
TEST(DigestTest, an_authentication_code_is_that_of_the_standard) {
  EXPECT_EQ(hexadecimal(authentication_code("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(bytes_of("00ff41"), std::string("\0\xff"
                                            "A",
                                            3));
  EXPECT_EQ(bytes_of("0"), std::nullopt);
  EXPECT_EQ(bytes_of("0G"), std::nullopt);
}

TEST(CookieTest, a_cookie_is_found_by_its_whole_name) {
  EXPECT_EQ(cookie_value("a=1; pulse=2; b=3", "pulse"), "2");
  EXPECT_EQ(cookie_value("xpulse=1;pulse=2=3", "pulse"), "2=3");
  EXPECT_EQ(cookie_value("pulse2=1; pulse", "pulse"), "");
}

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
    return gate.admit(request("GET", "/", {{"cookie", cookie}}), Need::look);
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
  EXPECT_EQ(status_of([&] { gate_->admit(request("GET", "/"), Need::look); }), 401U);
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

TEST_F(GateTest, without_tokens_all_may_look_and_none_may_act) {
  Gate open(std::get<Tokens>(Tokens::read("")), {});
  const Access access = open.admit(request("GET", "/"), Need::look);
  EXPECT_FALSE(access.has_token());
  EXPECT_FALSE(access.sees_payloads());
  EXPECT_EQ(status_of([&] { open.admit(request("POST", "/x"), Need::act); }), 403U);
}

TEST_F(GateTest, a_form_is_taken_only_with_the_secret_of_its_sign_in) {
  const std::string cookie = sign_in();
  EXPECT_TRUE(cookie.starts_with("pulse_8440=")) << cookie;
  const Access access =
      gate_->admit(request("GET", "/", {{"cookie", "other=1; " + cookie}}), Need::look);
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
  good.http.headers["origin"] = "http://127.0.0.1:8440";
  EXPECT_EQ(status_of([&] { gate_->admit(good, Need::act); }), 0U);
  good.http.headers["sec-fetch-site"] = "cross-site";
  EXPECT_EQ(status_of([&] { gate_->admit(good, Need::act); }), 403U);
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
