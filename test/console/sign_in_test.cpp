// What the cookie of a browser proves, and to whom it tells nothing.
#include "admission/sign_in.hpp"

#include <gtest/gtest.h>

#include "admission/cookie.hpp"
#include "admission/digest.hpp"
#include "admission/seal.hpp"

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
  // No hexadecimal digit, as a cookie of random digits could have.
  const Token ada_{"lyn", "a_role", sha256(secret_)};
  const Token bob_{"bob", "a_role", sha256("x")};
  const std::string cookie_ = make_sign_in(ada_, secret_, kEnd);
};

TEST_F(SignInTest, a_cookie_counts_for_its_token_until_its_end) {
  const auto sign_in = read_sign_in(cookie_, {bob_, ada_}, kEnd - 1s);
  ASSERT_TRUE(sign_in);
  EXPECT_EQ(sign_in->token.name, "lyn");
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

}  // namespace
}  // namespace pulse::console
