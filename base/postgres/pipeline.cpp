#include "base/postgres/pipeline.hpp"

#include <utility>

#include "base/postgres/sqlstate.hpp"

namespace pulse {
namespace {

// A pooler that shows the pid of a backend changed the backend: this session's prepared statements
// are gone, or another client's stand under the same names.
bool is_about_names(const std::string& sqlstate) {
  return sqlstate == sqlstate::kNoStatement || sqlstate == sqlstate::kDuplicateStatement;
}

// The longest text that a row without long texts keeps; the names of a job are shorter.
constexpr std::size_t kMaxShortText = 4096;

std::vector<std::string> columns_of(const PGresult* result) {
  std::vector<std::string> columns;
  for (int column = 0; column < PQnfields(result); ++column)
    columns.emplace_back(PQfname(result, column));
  return columns;
}

std::size_t bytes_of(const PGresult* result, int row) {
  std::size_t bytes = 0;
  for (int column = 0; column < PQnfields(result); ++column)
    bytes += static_cast<std::size_t>(PQgetlength(result, row, column));
  return bytes;
}

void add_row(QueryResult& rows, const PGresult* result, int row, bool is_whole) {
  for (int column = 0; column < PQnfields(result); ++column) {
    const auto length = static_cast<std::size_t>(PQgetlength(result, row, column));
    if (PQgetisnull(result, row, column) || (!is_whole && length > kMaxShortText)) {
      rows.add_cell(std::nullopt);
    } else {
      rows.add_cell(std::string(PQgetvalue(result, row, column), length));
    }
  }
  if (!is_whole) rows.set_last_cut(bytes_of(result, row));
}

}  // namespace

std::string field_of(const PGresult* result, int field) {
  const char* text = PQresultErrorField(result, field);
  std::string line = text == nullptr ? "" : text;
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

bool ends_the_session(const PGresult* result) {
  if (PQresultStatus(result) == PGRES_BAD_RESPONSE) return true;
  if (PQresultStatus(result) != PGRES_FATAL_ERROR) return false;
  const std::string severity = field_of(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  return severity == "FATAL" || severity == "PANIC" || field_of(result, PG_DIAG_SQLSTATE).empty();
}

SqlError error_of(const PGresult* result) {
  return {field_of(result, PG_DIAG_SQLSTATE), field_of(result, PG_DIAG_MESSAGE_PRIMARY),
          field_of(result, PG_DIAG_MESSAGE_DETAIL), field_of(result, PG_DIAG_MESSAGE_HINT),
          field_of(result, PG_DIAG_CONTEXT)};
}

QueryResult rows_of(const PGresult* result) {
  QueryResult rows(columns_of(result), {});
  const int height = PQntuples(result);
  rows.reserve(static_cast<std::size_t>(height));
  for (int row = 0; row < height; ++row) add_row(rows, result, row, /*is_whole=*/true);
  return rows;
}

void Pipeline::start_session() { *this = Pipeline(); }

bool Pipeline::send(PGconn* connection, const Calls& calls, Commit commit) {
  replies_.assign(calls.size(), RolledBack{});
  ended_ = 0;
  at_ = 0;
  is_failed_ = false;
  names_.clear();
  bounds_.clear();
  preparing_.clear();
  std::size_t first = 0;
  for (std::size_t number = 0; number < calls.size(); ++number) {
    if (!queue_call(connection, calls[number], number)) return false;
    if (commit == Commit::together && number + 1 < calls.size()) continue;
    if (PQpipelineSync(connection) != 1) return false;
    steps_.push_back({Step::Kind::sync, first, number + 1});
    first = number + 1;
  }
  return true;
}

bool Pipeline::queue_call(PGconn* connection, const Call& call, std::size_t number) {
  std::vector<const char*> values;
  values.reserve(call.params.size());
  for (const auto& param : call.params) values.push_back(param ? param->c_str() : nullptr);
  const auto count = static_cast<int>(values.size());
  const char* name = call.statement.name;
  names_.push_back(name);
  bounds_.push_back(call.max_bytes);
  const bool is_prepared = prepared_.count(name) != 0;
  // The next call of a statement must not depend on the first call, which may fail.
  const bool may_prepare = may_prepare_ && (is_prepared || preparing_.insert(name).second);
  if (!may_prepare || !call.statement.is_repeated) {
    steps_.push_back({Step::Kind::run, number});
    return PQsendQueryParams(connection, call.statement.sql, count, nullptr, values.data(), nullptr,
                             nullptr, /*resultFormat=*/0) == 1;
  }
  if (!is_prepared) {
    steps_.push_back({Step::Kind::prepare, number});
    if (PQsendPrepare(connection, name, call.statement.sql, 0, nullptr) != 1) return false;
  }
  steps_.push_back({Step::Kind::run, number});
  return PQsendQueryPrepared(connection, name, count, values.data(), nullptr, nullptr,
                             /*resultFormat=*/0) == 1;
}

Pipeline::Progress Pipeline::take_results(PGconn* connection) {
  for (;;) {
    read_by_rows(connection);
    if (PQisBusy(connection) != 0) return Progress::waiting;
    const ResultPtr result(PQgetResult(connection));
    if (result && ends_the_session(result.get())) {
      farewell_ = field_of(result.get(), PG_DIAG_MESSAGE_PRIMARY);
      if (farewell_.empty()) farewell_ = PQresultErrorMessage(result.get());
      return Progress::lost;
    }
    if (PQstatus(connection) == CONNECTION_BAD) return Progress::lost;
    if (!is_under_way()) return Progress::waiting;
    if (result) {
      take(result.get());
    } else if (steps_[at_].kind != Step::Kind::sync) {
      ++at_;  // all that libpq has to say about a step ends like this, but for a sync
    } else {
      return Progress::waiting;
    }
    if (at_ == steps_.size()) return Progress::answered;
  }
}

// A reply with a bound is read row by row, so that libpq never holds more than one row. libpq
// agrees before the first row only; a whole result does no harm but with its size.
void Pipeline::read_by_rows(PGconn* connection) const {
  if (!is_under_way() || steps_[at_].kind != Step::Kind::run) return;
  if (bounds_[steps_[at_].call]) (void)PQsetSingleRowMode(connection);
}

void Pipeline::take(const PGresult* result) {
  const Step step = steps_[at_];
  switch (PQresultStatus(result)) {
    case PGRES_SINGLE_TUPLE:
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
      if (step.kind == Step::Kind::prepare) prepared_.insert(names_[step.call]);
      if (step.kind == Step::Kind::run) add_rows(step.call, result);
      break;
    case PGRES_PIPELINE_SYNC:
      end_transaction(step);
      ++at_;
      break;
    case PGRES_PIPELINE_ABORTED: break;
    default: take_error(step, error_of(result)); break;
  }
}

void Pipeline::add_rows(std::size_t call, const PGresult* result) {
  auto* rows = std::get_if<QueryResult>(&replies_[call]);
  if (rows == nullptr) {
    rows =
        &replies_[call].emplace<QueryResult>(columns_of(result), std::vector<QueryResult::Cell>{});
    bytes_ = 0;
  }
  const int height = PQntuples(result);
  if (height > 1) rows->reserve(static_cast<std::size_t>(height));
  for (int row = 0; row < height; ++row) {
    const std::size_t bytes = bytes_of(result, row);
    const bool is_whole = !bounds_[call] || rows->empty() || bytes_ + bytes <= *bounds_[call];
    if (is_whole) bytes_ += bytes;
    add_row(*rows, result, row, is_whole);
  }
}

// The first error of a transaction is the reason for everything that follows.
void Pipeline::take_error(const Step& step, SqlError error) {
  if (is_failed_) return;
  is_failed_ = true;
  if (is_about_names(error.sqlstate)) {
    may_prepare_ = false;
    prepared_.clear();
  }
  replies_[step.call] = std::move(error);
}

void Pipeline::end_transaction(const Step& sync) {
  for (std::size_t call = sync.call; call < sync.after && is_failed_; ++call) {
    if (std::holds_alternative<QueryResult>(replies_[call])) replies_[call] = RolledBack{};
  }
  ended_ = sync.after;
  is_failed_ = false;
}

Replies Pipeline::finish() {
  steps_.clear();
  return std::exchange(replies_, {});
}

Replies Pipeline::give_up(const std::string& reason) {
  for (std::size_t call = ended_; call < replies_.size(); ++call) {
    replies_[call] = ConnectionLost{reason};
  }
  return finish();
}

}  // namespace pulse
