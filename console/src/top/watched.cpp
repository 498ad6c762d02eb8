#include "top/watched.hpp"

#include <algorithm>
#include <utility>

#include "job/job_page.hpp"
#include "list/lists.hpp"
#include "list/node_overviews.hpp"
#include "output/style.hpp"
#include "text/spelling.hpp"
#include "top/merged_rows.hpp"

namespace pulse::console {
namespace {

// One snapshot, in which all views have the same count, so that no figure of the screen contradicts
// another.
template <typename Read>
void in_snapshot(Database& database, const Read& read) {
  database.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  try {
    read();
  } catch (const Refused&) {
    database.query("ROLLBACK");
    throw;
  }
  database.query("COMMIT");
}

std::string read_job(Database& database, const std::string& id) {
  return job_page_text(read_job_page(database, id), Style());
}

class OneDatabase : public Watched {
 public:
  explicit OneDatabase(Database& database) : database_(database) {}

  const std::vector<Pane>& panes() const override { return pulse::console::panes(); }
  char first_key() const override { return '1'; }
  std::string where() const override { return database_.role() + '@' + database_.name(); }

  Reading read(const Pane& pane, const RowName* job) override {
    Reading reading;
    const auto worked = database_.worked();
    in_snapshot(database_, [&] {
      reading.overview = database_.query(overview_list().sql);
      reading.rows = database_.query(pane.sql);
      if (job != nullptr) reading.job = read_job(database_, job->id);
    });
    reading.worked = database_.worked() - worked;
    return reading;
  }

  std::string change(const RowName& /*row*/, const RowChange& change) override {
    return change(database_);
  }

 private:
  Database& database_;
};

// The panes have static lifetime; a late node may read `sql` at any time.
Reading read_node(Database& database, const char* sql, const RowName& job) {
  Reading reading;
  database.open();
  const auto worked = database.worked();
  in_snapshot(database, [&] {
    reading.overview = read_node_overview(database);
    if (sql != nullptr) reading.rows = database.query(sql);
  });
  reading.worked = database.worked() - worked;
  if (database.name() != job.node) return reading;
  try {
    reading.job = read_job(database, job.id);
  } catch (const Refused& refused) {
    reading.problem = refused.what();
  }
  return reading;
}

class SeveralNodes : public Watched {
 public:
  explicit SeveralNodes(std::vector<NodeDatabase> nodes) : sessions_(std::move(nodes)) {}

  const std::vector<Pane>& panes() const override { return node_panes(); }
  char first_key() const override { return '0'; }

  std::string where() const override {
    const auto count = static_cast<std::int64_t>(sessions_.size());
    return plural(count, "node") + (away_ == 0 ? "" : ", " + std::to_string(away_) + " away");
  }

  Reading read(const Pane& pane, const RowName* job) override {
    const RowName wanted = job == nullptr ? RowName() : *job;
    auto answers = sessions_.ask<Reading>(
        [sql = pane.sql, wanted](Database& database) { return read_node(database, sql, wanted); });
    NodeAnswers<QueryResult> overviews;
    for (auto& [node, reading, trouble] : answers) {
      overviews.push_back({node, std::move(reading.overview), trouble});
    }
    const QueryResult nodes = node_overviews(overviews);
    Reading all{.overview = sum_of_nodes(nodes)};
    away_ = 0;
    NodeAnswers<QueryResult> rows;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      auto& [node, reading, trouble] = answers[i];
      trouble = nodes[i].optional_text("trouble").value_or("");
      away_ += trouble.empty() ? 0 : 1;
      all.worked = std::max(all.worked, reading.worked);
      if (node == wanted.node) {
        all.job = std::move(reading.job);
        all.problem = trouble.empty() ? reading.problem : node + ": " + trouble;
      }
      rows.push_back({node, std::move(reading.rows), trouble});
    }
    all.rows = pane.sql == nullptr ? node_list(nodes) : merged_rows(pane, rows);
    return all;
  }

  std::string change(const RowName& row, const RowChange& change) override {
    const auto outcome = std::make_shared<Outcome>();
    const std::string trouble = sessions_.run_at(row.node, [outcome, change](Database& database) {
      try {
        outcome->message = change(database);
      } catch (const Refused& refused) {
        outcome->refusal = refused.error;
      }
    });
    if (!trouble.empty()) throw Unreachable(row.node + ": " + trouble);
    if (outcome->refusal) throw Refused(*outcome->refusal);
    return outcome->message;
  }

 private:
  // Shared with the thread of the change.
  struct Outcome {
    std::string message;
    std::optional<SqlError> refusal;
  };

  NodeSessions sessions_;
  std::int64_t away_ = 0;  // nodes without rows in the last reading
};

}  // namespace

std::unique_ptr<Watched> watch_database(Database& database) {
  return std::make_unique<OneDatabase>(database);
}

std::unique_ptr<Watched> watch_nodes(std::vector<NodeDatabase> nodes) {
  return std::make_unique<SeveralNodes>(std::move(nodes));
}

}  // namespace pulse::console
