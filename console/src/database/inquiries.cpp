#include "database/inquiries.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace pulse::console {
namespace {

// One question, shared by the asking thread and the threads of the nodes.
struct Inquiry {
  std::mutex mutex;
  std::condition_variable ended;
  std::vector<std::optional<std::string>> troubles;  // guarded by mutex, as the next two
  std::size_t open = 0;                              // nodes that may still answer
  bool is_over = false;                              // the asking thread has gone
};

}  // namespace

Inquiries::Inquiries(std::vector<std::string> names, std::chrono::milliseconds patience)
    : names_(std::move(names)),
      patience_(patience),
      late_(std::make_shared<std::vector<std::atomic<int>>>(names_.size())) {}

NodeOutcomes Inquiries::ask(const Begin& begin) {
  const auto end = std::chrono::steady_clock::now() + patience_;
  const auto inquiry = std::make_shared<Inquiry>();
  inquiry->troubles.resize(names_.size());
  std::vector<bool> is_asked(names_.size());
  std::unique_lock lock(inquiry->mutex);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto ended = [inquiry, late = late_, i](const std::string& trouble) {
      const std::lock_guard answer_lock(inquiry->mutex);
      if (inquiry->is_over) {
        --(*late)[i];
        return;
      }
      inquiry->troubles[i] = trouble;
      --inquiry->open;
      inquiry->ended.notify_one();
    };
    is_asked[i] = (*late_)[i] == 0 && begin(i, ended);
    inquiry->open += is_asked[i] ? 1 : 0;
  }
  inquiry->ended.wait_until(lock, end, [&] { return inquiry->open == 0; });
  inquiry->is_over = true;
  NodeOutcomes outcomes;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto& trouble = inquiry->troubles[i];
    if (is_asked[i] && !trouble) ++(*late_)[i];
    outcomes.push_back({names_[i], trouble.value_or(kNoAnswer)});
  }
  return outcomes;
}

}  // namespace pulse::console
