#include "base/loop/blocking_calls.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>

namespace pulse {
namespace {

// Lets calls stay until they may go.
class CallGate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

TEST(BlockingCalls, OneThreadServesCallsThatFollowEachOther) {
  BlockingCalls calls(1);
  std::promise<void> first;
  EXPECT_FALSE(calls.run([&first] { first.set_value(); }));
  first.get_future().get();
  // With room for one thread only, each further call is refused or runs on that one.
  std::promise<void> ran;
  std::error_code refused;
  do {
    refused = calls.run([&ran] { ran.set_value(); });
  } while (refused == std::errc::device_or_resource_busy);
  EXPECT_FALSE(refused);
  ran.get_future().get();
}

TEST(BlockingCalls, CallsThatStayAreLimited) {
  BlockingCalls calls(2);
  const auto gate = std::make_shared<CallGate>();
  EXPECT_FALSE(calls.run([gate] { gate->pass(); }));
  EXPECT_FALSE(calls.run([gate] { gate->pass(); }));
  EXPECT_EQ(calls.run([] { FAIL() << "a third one ran"; }), std::errc::device_or_resource_busy);
  gate->open();
}

TEST(BlockingCalls, ACallOutlivesItsOwner) {
  const auto gate = std::make_shared<CallGate>();
  const auto ended = std::make_shared<std::promise<void>>();
  {
    BlockingCalls calls(1);
    EXPECT_FALSE(calls.run([gate, ended] {
      gate->pass();
      ended->set_value();
    }));
  }
  gate->open();
  ended->get_future().get();
}

TEST(BlockingCalls, WhatACallHoldsIsFreedWhenItEnds) {
  BlockingCalls calls(1);
  std::promise<void> freed;
  std::shared_ptr<int> held(new int(1), [&freed](const int* value) {
    delete value;
    freed.set_value();
  });
  EXPECT_FALSE(calls.run([held = std::move(held)] {}));
  freed.get_future().get();
}

}  // namespace
}  // namespace pulse
