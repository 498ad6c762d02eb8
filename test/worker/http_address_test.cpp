// ADDRESS:PORT of --http.
#include "base/http/address.hpp"

#include <gtest/gtest.h>

namespace pulse {
namespace {

TEST(HttpAddress, the_loopback_is_meant_unless_an_address_is_given) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"9187", "127.0.0.1:9187"},
      {":9187", "127.0.0.1:9187"},
      {"0", "127.0.0.1:0"},
      {"0.0.0.0:80", "0.0.0.0:80"},
      {"10.1.2.3:65535", "10.1.2.3:65535"},
      {"[::1]:9187", "[::1]:9187"},
      {"[::]:9187", "[::]:9187"},
  };
  for (const auto& [text, meant] : cases) {
    const auto parsed = parse_http_address(text);
    const auto* address = std::get_if<HttpAddress>(&parsed);
    ASSERT_NE(address, nullptr) << text;
    EXPECT_EQ(address->text(), meant);
  }
}

TEST(HttpAddress, what_is_none_is_named) {
  for (const std::string text : {"", ":", "65536", "-1", "+80", "80x", "::1:80", "[::1]", "[]:80",
                                 "[127.0.0.1]:80", "localhost:80", "256.0.0.1:80",
                                 "1.2.3.4:", "a b:80", "http://127.0.0.1:80", "[:80", "]:80"}) {
    const auto parsed = parse_http_address(text);
    const auto* problem = std::get_if<std::string>(&parsed);
    ASSERT_NE(problem, nullptr) << text;
    EXPECT_NE(problem->find('\'' + text + "' is not ADDRESS:PORT"), std::string::npos) << *problem;
  }
}

}  // namespace
}  // namespace pulse
