#include "producers.hpp"

#include <charconv>
#include <stdexcept>

namespace bench {
namespace {

constexpr std::string_view kHead = "{\"at\":";

std::vector<std::string> statements(const ProducerOptions& options) {
  std::string task = "'" + options.task + "'";
  if (options.together == 1) return {"SELECT (pulse.add_job(" + task + ", $1::json)).id"};
  return {"SELECT count(*) FROM pulse.add_jobs(ARRAY(SELECT ROW(" + task +
          ", $1::json, NULL, NULL, NULL, NULL, NULL, NULL)::pulse.job_spec"
          " FROM generate_series(1, " +
          std::to_string(options.together) + ")))"};
}

}  // namespace

Producers::Producers(Loop* loop, const ProducerOptions& options) : loop_(loop), options_(options) {
  if (options.payload_bytes > 0)
    padding_ = ",\"padding\":\"" + std::string(options.payload_bytes, 'x') + "\"";
  for (int i = 0; i < options.sessions; i++) {
    links_.push_back(std::make_unique<Link>(loop, "bench-load producer", statements(options)));
    idle_.push_back(links_.back().get());
  }
  if (options.rate > 0)
    every_ = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(options.together / options.rate));
}

void Producers::start() {
  is_stopped_ = false;
  next_ = Clock::now();
  if (options_.rate > 0) {
    on_schedule();
    return;
  }
  std::vector<Link*> ready = idle_;
  for (Link* link : ready) on_added(link);
}

void Producers::on_schedule() {
  for (Moment now = Clock::now(); !is_done() && next_ <= now; next_ += every_) {
    asked_ += options_.together;
    if (idle_.empty())
      late_.push_back(next_);
    else
      add(idle_.back(), next_);
  }
  if (!is_done()) loop_->at(next_, [this] { on_schedule(); });
}

void Producers::add(Link* link, Moment scheduled) {
  std::erase(idle_, link);
  std::string payload(kHead);
  payload += std::to_string(scheduled.time_since_epoch().count()) + padding_ + "}";
  link->ask({{0, {payload}}}, [this, link](std::vector<Rows>&) {
    added_ += options_.together;
    idle_.push_back(link);
    on_added(link);
  });
}

void Producers::on_added(Link* link) {
  if (!late_.empty()) {
    Moment scheduled = late_.front();
    late_.pop_front();
    add(link, scheduled);
  } else if (options_.rate == 0 && !is_done()) {
    asked_ += options_.together;
    add(link, Clock::now());
  }
}

Moment Producers::scheduled(std::string_view payload) {
  std::int64_t nanoseconds = 0;
  const char* end = payload.data() + payload.size();
  if (!payload.starts_with(kHead) ||
      std::from_chars(payload.data() + kHead.size(), end, nanoseconds).ec != std::errc())
    throw std::runtime_error("a payload that no producer of this program made");
  return Moment(Clock::duration(nanoseconds));
}

}  // namespace bench
