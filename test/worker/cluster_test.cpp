// A cluster of Citus: the databases of its nodes, the question for them, and a list that changes
// while the worker runs.
#include "base/cluster/node_table.hpp"
#include "liveness/cluster_nodes.hpp"
#include "many_bench.hpp"

namespace pulse {
namespace {

ConnectOptions read(const std::string& dsn) {
  auto options = read_cluster(dsn, "pulse-worker test");
  EXPECT_TRUE(std::holds_alternative<ConnectOptions>(options)) << std::get<std::string>(options);
  return std::get<ConnectOptions>(std::move(options));
}

using Cell = QueryResult::Cell;

// As the table of the node `own`; rows of group, host and port.
QueryResult node_table(const std::string& own,
                       const std::vector<std::array<std::string, 3>>& nodes) {
  std::vector<Cell> cells;
  for (const auto& [group, host, port] : nodes) cells.insert(cells.end(), {own, group, host, port});
  if (nodes.empty()) cells = {own, std::nullopt, std::nullopt, std::nullopt};
  return {{"own_group", "node_group", "host", "port"}, std::move(cells)};
}

std::string names(const std::vector<NamedDatabase>& databases) {
  std::string names;
  for (const NamedDatabase& database : databases) {
    EXPECT_TRUE(is_database_name(database.name)) << database.name;
    names += (names.empty() ? "" : " ") + database.name + '=' +
             database.options.value("host").value_or("(none)") + ':' +
             database.options.value("port").value_or("(none)");
  }
  return names;
}

class NodeTableTest : public ::testing::Test {
 protected:
  NodeTableTest() {
    for (const char* name : {"PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE", "PGPASSWORD"}) {
      unsetenv(name);
    }
  }
};

TEST_F(NodeTableTest, each_node_is_reached_as_the_coordinator_is) {
  const ConnectOptions given = read(
      "host=c1,c2 port=5432,5433 dbname=shop user=worker password=hunter2 sslmode=verify-full "
      "sslrootcert=/ca.pem connect_timeout=7");
  const auto nodes = databases_of_nodes(
      node_table("0", {{"0", "c1", "5432"}, {"2", "n2", "6000"}, {"7", "n7", "6001"}}), given);
  EXPECT_EQ(names(nodes), "node0=c1,c2:5432,5433 node2=n2:6000 node7=n7:6001")
      << "the coordinator as given: a standby may take its place";
  EXPECT_EQ(nodes[0].options, given);
  for (const NamedDatabase& node : nodes) {
    for (const auto& [keyword, value] :
         std::map<std::string, std::string>{{"dbname", "shop"},
                                            {"user", "worker"},
                                            {"password", "hunter2"},
                                            {"sslmode", "verify-full"},
                                            {"sslrootcert", "/ca.pem"},
                                            {"target_session_attrs", "primary"},
                                            {"fallback_application_name", "pulse-worker test"}}) {
      EXPECT_EQ(node.options.value(keyword), value) << node.name;
    }
    EXPECT_EQ(node.options.deadline(), 7s);
  }
}

TEST_F(NodeTableTest, a_coordinator_that_its_table_lacks_is_a_node) {
  const ConnectOptions given = read("host=/run/postgresql dbname=shop");
  EXPECT_EQ(names(databases_of_nodes(node_table("0", {{"1", "n1", "5432"}}), given)),
            "node0=/run/postgresql:5432 node1=n1:5432");
  EXPECT_EQ(names(databases_of_nodes(node_table("0", {}), given)), "node0=/run/postgresql:5432");
}

TEST_F(NodeTableTest, a_node_may_be_asked_in_place_of_the_coordinator) {
  const QueryResult table = node_table("2", {{"0", "c", "1"}, {"1", "n1", "2"}, {"2", "n2", "3"}});
  EXPECT_EQ(names(databases_of_nodes(table, read("host=any,other"))),
            "node0=c:1 node1=n1:2 node2=n2:3")
      << "another node may answer the next question";
}

TEST_F(NodeTableTest, an_address_that_overrules_the_host_is_refused) {
  const auto problem_of = [](const std::string& dsn) {
    const auto read = read_cluster(dsn, "test");
    const auto* problem = std::get_if<std::string>(&read);
    return problem == nullptr ? std::string() : *problem;
  };
  EXPECT_NE(problem_of("host=c hostaddr=10.0.0.1"), "");
  setenv("PGHOSTADDR", "10.0.0.1", 1);
  EXPECT_NE(problem_of("host=c"), "") << "libpq would use it for each node";
  unsetenv("PGHOSTADDR");
  EXPECT_EQ(problem_of("postgresql://worker@c/shop"), "");
}

// --- the question -------------------------------------------------------------------------------

class ClusterNodesTest : public ::testing::Test {
 protected:
  ClusterNodesTest() {
    nodes_.on_nodes = [this](const std::vector<NamedDatabase>& nodes) {
      heard_.push_back(names(nodes));
    };
    nodes_.on_refused = [this](ExitCode code, const std::string& reason) {
      refused_ = code;
      reason_ = reason;
    };
  }
  void ask() {
    nodes_.ask();
    settle(timers_);
  }
  void answer(Reply reply) {
    settle(timers_);
    ASSERT_EQ(connection_.running(), "node_table");
    connection_.answer(std::move(reply));
    settle(timers_);
  }
  void pass_time(std::chrono::nanoseconds by) {
    clock_.advance(by);
    settle(timers_);
  }

  FakeClock clock_;
  Timers timers_{clock_};
  LogCapture capture_{LogFormat::text, LogLevel::info};
  FakeConnection connection_;
  ClusterNodes nodes_{read("host=c port=1 dbname=shop"), connection_, timers_, [] { return 0.5; },
                      capture_.log()};
  std::vector<std::string> heard_;
  std::optional<ExitCode> refused_;
  std::string reason_;
};

TEST_F(ClusterNodesTest, the_session_ends_with_the_answer_and_opens_for_the_next_question) {
  ask();
  connection_.accept();
  answer(node_table("0", {{"0", "c", "1"}, {"1", "n", "2"}}));
  EXPECT_FALSE(connection_.is_open());
  ask();
  connection_.accept();
  answer(node_table("0", {{"0", "c", "1"}}));
  EXPECT_EQ(heard_, (std::vector<std::string>{"node0=c:1 node1=n:2", "node0=c:1"}));
}

TEST_F(ClusterNodesTest, a_server_that_is_away_is_asked_until_it_answers) {
  ask();
  connection_.refuse("no route");
  for (int i = 0; i < 20; ++i) {
    pass_time(5s);
    if (connection_.is_opening()) connection_.refuse("no route");
  }
  EXPECT_FALSE(refused_);
  EXPECT_TRUE(capture_.has("reconnecting connection=cluster"));
  pass_time(5s);
  connection_.accept();
  settle(timers_);
  connection_.lose("gone");
  pass_time(5s);
  connection_.accept();
  answer(node_table("0", {}));
  EXPECT_EQ(heard_.size(), 1U);
}

TEST_F(ClusterNodesTest, a_change_during_a_question_is_asked_for_again) {
  ask();
  connection_.accept();
  settle(timers_);
  ask();
  answer(node_table("0", {}));
  answer(node_table("0", {{"1", "n", "2"}}));
  EXPECT_EQ(heard_.back(), "node0=c:1 node1=n:2");
  EXPECT_FALSE(connection_.is_open());
}

TEST_F(ClusterNodesTest, a_database_without_citus_is_refused) {
  ask();
  connection_.accept();
  answer(SqlError{"42P01", "relation \"pg_dist_local_group\" does not exist", "", "", ""});
  EXPECT_EQ(refused_, ExitCode::database_gone);
  EXPECT_EQ(reason_.find("database shop has no Citus"), 0U) << reason_;
  EXPECT_FALSE(connection_.is_open());
}

TEST_F(ClusterNodesTest, a_role_that_may_not_read_the_list_is_refused) {
  ask();
  connection_.accept();
  answer(SqlError{"42501", "permission denied for table pg_dist_node", "", "", ""});
  EXPECT_EQ(refused_, ExitCode::configuration);
  EXPECT_EQ(reason_.find("role ann may not read the list of nodes"), 0U) << reason_;
}

TEST_F(NodeTableTest, a_detail_in_parentheses_has_no_period) {
  const auto told = refusal_of_node_table({"XX000", "it broke", "A disk is full.", "", ""}, "", "");
  EXPECT_EQ(told.reason, "it broke (A disk is full)");
}

TEST_F(ClusterNodesTest, a_refusal_of_the_moment_is_asked_again) {
  ask();
  connection_.accept();
  answer(SqlError{"57014", "canceling statement due to user request", "", "", ""});
  EXPECT_FALSE(refused_);
  pass_time(5s);
  answer(node_table("0", {}));
  EXPECT_EQ(heard_.size(), 1U);
}

TEST_F(ClusterNodesTest, a_database_that_does_not_exist_is_refused) {
  ask();
  connection_.refuse("database \"shop\" does not exist", /*is_permanent=*/true);
  EXPECT_EQ(refused_, ExitCode::database_gone);
  pass_time(1h);
  EXPECT_EQ(connection_.opens(), 1) << "nobody asks again";
}

TEST_F(ClusterNodesTest, patience_ends) {
  nodes_.ask_within(1min);
  settle(timers_);
  pass_time(1min);
  EXPECT_EQ(refused_, ExitCode::database_gone);
}

// --- nodes come and go --------------------------------------------------------------------------

class ChangingClusterTest : public ManyBench {
 protected:
  ChangingClusterTest() { kind_ = WorkerGroup::Kind::cluster; }
  void given_nodes(std::size_t count, int slots) {
    given_databases(count, slots);
    start();
  }
  void serve(const std::vector<NamedDatabase>& databases) {
    group_->serve_databases(databases);
    run();
  }
};

TEST_F(ChangingClusterTest, a_worker_may_start_before_the_list_is_known) {
  given_databases(2, 2);
  group_ = std::make_unique<WorkerGroup>(
      kind_, false,
      [this](const NamedDatabase& each) { return std::make_unique<OneWorker>(*this, each.name); },
      timers_, capture_.log());
  group_->on_finished = [this](ExitCode code) { exit_code_ = code; };
  start();
  EXPECT_FALSE(group_->state().is_draining);
  servers_[1]->backlog = 1;
  serve({database(0), database(1)});
  EXPECT_EQ(servers_[0]->registrations, 1);
  EXPECT_EQ(running_of(1), 1U) << "it knows the tasks";
}

TEST_F(ChangingClusterTest, a_stop_before_the_list_is_known_ends_the_process) {
  given_databases(0, 2);
  start();
  group_->take_signal();
  EXPECT_EQ(exit_code_, ExitCode::drained);
}

TEST_F(ChangingClusterTest, a_node_that_is_added_is_served_and_the_others_notice_nothing) {
  given_databases(3, 3);
  group_->serve_databases({database(0), database(1)});
  start();
  servers_[2]->backlog = 5;
  EXPECT_EQ(servers_[2]->registrations, 0);
  serve({database(0), database(1), database(2)});
  EXPECT_EQ(running_of(2), 3U);
  EXPECT_EQ(servers_[0]->registrations, 1);
  EXPECT_EQ(servers_[0]->heartbeat.opens(), 1);
  EXPECT_EQ(group_->names(), (std::vector<std::string>{"d0", "d1", "d2"}));
}

TEST_F(ChangingClusterTest, a_node_that_is_gone_drains_and_the_others_notice_nothing) {
  given_databases(2, 2);
  start();
  servers_[1]->backlog = 10;
  wake(1, 0);
  ASSERT_EQ(running_of(1), 2U);
  serve({database(0)});
  EXPECT_EQ(running_of(1), 2U) << "its jobs run to their end";
  EXPECT_EQ(group_->state().databases.size(), 2U) << "and are seen";
  end_task_of(1);
  end_task_of(1);
  run();
  EXPECT_EQ(servers_[1]->given, 2) << "nothing was claimed since";
  EXPECT_EQ(capture_.count("stopped"), 1);
  EXPECT_EQ(group_->state().databases.size(), 1U);
  EXPECT_FALSE(exit_code_);
  servers_[0]->backlog = 2;
  wake(0, 0);
  EXPECT_EQ(running_of(0), 2U) << "its slots are free";
}

TEST_F(ChangingClusterTest, a_node_that_comes_back_while_it_drains_is_served_again) {
  given_databases(2, 2);
  start();
  servers_[1]->backlog = 1;
  wake(1, 0);
  serve({database(0)});
  servers_.push_back(std::make_unique<Server>());  // its sessions of now
  servers_.back()->identity = servers_[1]->identity;
  std::swap(servers_[1], servers_[2]);
  serve({database(0), database(1)});
  EXPECT_EQ(servers_[1]->registrations, 1) << "the leaving worker is no second of the database";
  EXPECT_FALSE(capture_.has("are one database"));
  end_task(0);
  std::swap(servers_[1], servers_[2]);
}

TEST_F(ChangingClusterTest, a_refused_node_that_is_gone_is_tried_no_more) {
  given_databases(2, 2);
  servers_[1]->refusal = "3F000";
  start();
  serve({database(0)});
  servers_[1]->refusal.clear();
  pass_time(WorkerGroup::kLastRetry);
  EXPECT_EQ(servers_[1]->registrations, 0);
  EXPECT_EQ(group_->state().databases.size(), 1U);
}

TEST_F(ChangingClusterTest, two_nodes_at_one_server_refuse_the_second_alone) {
  given_databases(3, 2);
  servers_[2]->identity = servers_[0]->identity;
  start();
  EXPECT_FALSE(exit_code_);
  EXPECT_EQ(servers_[0]->registrations + servers_[2]->registrations, 1);
  EXPECT_EQ(servers_[1]->registrations, 1);
  EXPECT_TRUE(capture_.has("lead to one server"));
}

TEST_F(ChangingClusterTest, a_stop_waits_for_nodes_that_are_gone) {
  given_databases(2, 2);
  for (auto& server : servers_) server->backlog = 10;
  start();
  ASSERT_EQ(running_of(1), 1U);
  serve({database(0)});
  group_->take_signal();
  run();
  EXPECT_FALSE(exit_code_);
  end_task_of(0);
  run();
  EXPECT_FALSE(exit_code_) << "the node that is gone has a job";
  end_task_of(1);
  run();
  EXPECT_EQ(exit_code_, ExitCode::drained);
}

}  // namespace
}  // namespace pulse
