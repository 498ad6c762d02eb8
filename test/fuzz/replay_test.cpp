// The corpus of test/fuzz without a fuzzer: each file, all that it begins with, and each of these
// with one bit turned. A broken promise ends the process.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "target.hpp"

namespace pulse::fuzz {
namespace {

const std::map<std::string, Target> kTargets{{"array_literal", array_literal},
                                             {"command_line", command_line},
                                             {"connection_options", connection_options},
                                             {"crontab", crontab},
                                             {"duration", duration},
                                             {"http_address", http_address},
                                             {"json_members", json_members},
                                             {"process_command", process_command},
                                             {"process_line", process_line},
                                             {"query_result", query_result},
                                             {"stderr_tail", stderr_tail},
                                             {"task_message", task_message},
                                             {"variables", variables}};

class ReplayTest : public ::testing::TestWithParam<std::string> {};

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_P(ReplayTest, the_corpus_breaks_no_promise) {
  const Target target = kTargets.at(GetParam());
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(PULSE_FUZZ_CORPUS "/") + GetParam())) {
    const std::string input = read(entry.path());
    target(input);
    for (std::size_t size = 0; size < input.size(); ++size) {
      std::string part = input.substr(0, size);
      target(part);
      if (part.empty()) continue;
      // Another place and another bit for each size.
      part[size * 7 % part.size()] ^= static_cast<char>(1U << (size % 8));
      target(part);
    }
    ++files;
  }
  EXPECT_GE(files, 3);
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& [name, target] : kTargets) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Fuzz, ReplayTest, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace pulse::fuzz
