#include "link.hpp"

#include <stdexcept>
#include <utility>

namespace bench {
namespace {

constexpr int kBinary = 1;

[[noreturn]] void fail(const char* what, const char* message) {
  throw std::runtime_error(std::string(what) + ": " + message);
}

}  // namespace

std::string array_text(const Ids& ids) {
  std::string text = "{";
  for (std::int64_t id : ids) {
    if (text.size() > 1) text += ',';
    text += std::to_string(id);
  }
  return text + "}";
}

Link::Link(Loop* loop, const std::string& name, const std::vector<std::string>& statements)
    : loop_(loop), connection_(PQconnectdb(("application_name='" + name + "'").c_str()), PQfinish) {
  PGconn* connection = connection_.get();
  if (PQstatus(connection) != CONNECTION_OK) fail("cannot connect", PQerrorMessage(connection));
  // Notices tell of sweeps that are due, which the background worker makes.
  PQsetNoticeReceiver(
      connection, [](void*, const PGresult*) {}, nullptr);
  for (std::size_t i = 0; i < statements.size(); i++) {
    PGresult* result =
        PQprepare(connection, std::to_string(i).c_str(), statements[i].c_str(), 0, nullptr);
    bool is_prepared = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (!is_prepared) fail(statements[i].c_str(), PQerrorMessage(connection));
  }
  if (PQsetnonblocking(connection, 1) != 0 || !PQenterPipelineMode(connection))
    fail("no pipeline", PQerrorMessage(connection));
  loop_->watch(PQsocket(connection), this);
}

void Link::ask(const std::vector<Question>& questions, Answer answer) {
  PGconn* connection = connection_.get();
  for (const Question& question : questions) {
    std::vector<const char*> values;
    for (const std::string& value : question.values) values.push_back(value.c_str());
    if (!PQsendQueryPrepared(connection, std::to_string(question.statement).c_str(),
                             static_cast<int>(values.size()), values.data(), nullptr, nullptr,
                             kBinary))
      fail("cannot send", PQerrorMessage(connection));
  }
  if (!PQpipelineSync(connection)) fail("cannot send", PQerrorMessage(connection));
  asked_.push_back({std::move(answer), {}});
  send();
}

void Link::send() {
  int left = PQflush(connection_.get());
  if (left < 0) fail("cannot send", PQerrorMessage(connection_.get()));
  if ((left > 0) == wants_writable_) return;
  wants_writable_ = left > 0;
  loop_->want_writable(PQsocket(connection_.get()), this, wants_writable_);
}

void Link::on_ready() {
  PGconn* connection = connection_.get();
  if (!PQconsumeInput(connection)) fail("the session is lost", PQerrorMessage(connection));
  send();
  while (!asked_.empty() && !PQisBusy(connection)) take_result(PQgetResult(connection));
}

// Between the results of two statements stands a NULL.
void Link::take_result(PGresult* result) {
  if (!result) return;
  switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK: asked_.front().rows.emplace_back(result); return;
    case PGRES_PIPELINE_SYNC: {
      PQclear(result);
      Asked asked = std::move(asked_.front());
      asked_.pop_front();
      asked.answer(asked.rows);
      return;
    }
    default: {
      std::string message = PQresultErrorMessage(result);
      PQclear(result);
      fail("refused", message.c_str());
    }
  }
}

}  // namespace bench
