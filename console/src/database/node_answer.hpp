// Answers of several databases, the nodes, to one question.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/postgres/query_result.hpp"
#include "database/database.hpp"

namespace pulse::console {

// A node that has not answered within this time counts as one that does not answer.
constexpr std::chrono::milliseconds kNodePatience(1000);
inline constexpr const char* kNoAnswer = "does not answer";
inline constexpr const char* kNotReached = "cannot be reached";

// A text that tells a database from each other database, also where two names lead to one database.
#define PULSE_DATABASE_IDENTITY                                            \
  "SELECT s.system_identifier || '/' || d.oid AS identity"                 \
  " FROM pg_catalog.pg_control_system() AS s, pg_catalog.pg_database AS d" \
  " WHERE d.datname = pg_catalog.current_database()"
inline constexpr const char* kDatabaseIdentity = PULSE_DATABASE_IDENTITY;

struct NodeOutcome {
  std::string node;     // the NAME of the database
  std::string trouble;  // why there is no answer; empty for a node that answered
};
using NodeOutcomes = std::vector<NodeOutcome>;

// Reads the database of the node of this number; throws as Database::query does.
using NodeTask = std::function<void(std::size_t number, Database& database)>;

template <typename Value>
struct NodeAnswer {
  std::string node;          // the NAME of the database
  Value value = {};          // of a node that answered
  std::string trouble = {};  // why there is no value; empty for a node that answered

  bool is_there() const { return trouble.empty(); }
};
template <typename Value>
using NodeAnswers = std::vector<NodeAnswer<Value>>;

// The NAMEs of nodes by the kDatabaseIdentity of their databases.
using NodesByIdentity = std::map<std::string, std::string>;
// Notes the node. Returns the trouble of a node whose database another noted node has; else empty.
std::string trouble_of_second_name(NodesByIdentity& noted, const std::string& identity,
                                   const std::string& node);

// Makes a database that stands under a second name a trouble of the second name. `identity_of`
// returns the kDatabaseIdentity of a value.
template <typename Value, typename IdentityOf>
void refuse_second_names(NodeAnswers<Value>& answers, const IdentityOf& identity_of) {
  NodesByIdentity noted;
  for (NodeAnswer<Value>& answer : answers) {
    if (!answer.is_there()) continue;
    answer.trouble = trouble_of_second_name(noted, identity_of(answer.value), answer.node);
  }
}

// Reads the value of one node; throws as Database::query does.
template <typename Value>
using NodeQuestion = std::function<Value(Database& database)>;

// Returns what each of `count` nodes answers. `ask` runs a task at each node and returns the
// outcomes, perhaps before the tasks of late nodes have ended: so a late task writes to a place
// that nobody reads.
template <typename Value>
NodeAnswers<Value> answers_of(std::size_t count, const NodeQuestion<Value>& question,
                              const std::function<NodeOutcomes(const NodeTask& task)>& ask) {
  const auto values = std::make_shared<std::vector<Value>>(count);
  const NodeOutcomes outcomes = ask([values, question](std::size_t number, Database& database) {
    (*values)[number] = question(database);
  });
  NodeAnswers<Value> answers;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    answers.push_back({.node = outcomes[i].node, .trouble = outcomes[i].trouble});
    if (answers[i].is_there()) answers[i].value = std::move((*values)[i]);
  }
  return answers;
}

}  // namespace pulse::console
