// What several proofs begin and end with.
#include "proofs.hpp"

namespace bench {

std::int64_t register_worker(Session* session, const std::string& name, const std::string& task) {
  return session->number("SELECT id FROM pulse.register_worker($1, ARRAY[$2])", {name, task});
}

void add_many(Session* session, const std::string& columns, int count) {
  session->script("SELECT count(*) FROM pulse.add_jobs(ARRAY(SELECT ROW(" + columns +
                  ")::pulse.job_spec FROM generate_series(1, " + std::to_string(count) +
                  ") AS i))");
}

void check_verify(Session* session, Report* report) {
  Rows broken = session->run("SELECT promise, job_id, detail FROM pulse.verify() LIMIT 5");
  report->check(broken.count() == 0, "verify() is empty");
  for (int i = 0; i < broken.count(); i++)
    report->note(std::string(broken.text(i, 0)) + " job " + std::to_string(broken.number(i, 1)) +
                 ": " + std::string(broken.text(i, 2)));
}

}  // namespace bench
