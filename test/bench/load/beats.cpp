#include "beats.hpp"

namespace bench {

Beats::Beats(Loop* loop, const Ids& workers, int sessions, Clock::duration interval,
             bool tells_jobs)
    : loop_(loop), workers_(workers) {
  std::string jobs = tells_jobs ? "'{}'" : "NULL";
  for (int i = 0; i < sessions; i++)
    links_.push_back(std::make_unique<Link>(
        loop, "bench-load heartbeat",
        std::vector<std::string>{"SELECT (pulse.heartbeat($1::bigint, " + jobs + ")).status"}));
  if (!workers.empty()) every_ = interval / workers.size();
}

void Beats::start() {
  next_ = Clock::now();
  if (!links_.empty() && !workers_.empty()) on_schedule();
}

void Beats::on_schedule() {
  for (Moment now = Clock::now(); next_ <= now; next_ += every_) {
    beat(next_worker_, next_);
    next_worker_ = (next_worker_ + 1) % workers_.size();
  }
  loop_->at(next_, [this] { on_schedule(); });
}

void Beats::beat(std::size_t worker, Moment scheduled) {
  Link* link = links_[worker % links_.size()].get();
  link->ask({{0, {std::to_string(workers_[worker])}}}, [this, scheduled](std::vector<Rows>& rows) {
    count_++;
    if (rows[0].text(0, 0) != "alive") refused_++;
    latencies_.add(scheduled);
  });
}

}  // namespace bench
