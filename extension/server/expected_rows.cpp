// A queue is often empty when autovacuum analyzes it, and has a hundred thousand jobs a minute
// later. Until the next ANALYZE the planner then takes a table for empty, however many pages it
// has. In an empty table the scan of a whole index costs as much as the search for one key, so the
// planner scans a whole index for each row of a join. A session also keeps a plan that it made
// while the table had no page.
//
// PostgreSQL counts ten pages for a table that was never vacuumed, for the same reason
// (table_block_relation_estimate_size); this hook counts them for each table of the schema.
#include "server/expected_rows.hpp"

#include "server/postgres.hpp"

extern "C" {
#include "catalog/namespace.h"
#include "optimizer/plancat.h"
#include "utils/lsyscache.h"
}

namespace pulse {
namespace {

constexpr double kLeastPages = 10;
// A third of what small jobs fill, so that the statistics hold for tables that were analyzed.
constexpr double kLeastRowsOfPage = 10;

get_relation_info_hook_type next_hook = nullptr;

extern "C" void pulse_relation_info(PlannerInfo* root, Oid table, bool is_parent,
                                    RelOptInfo* expected) {
  if (next_hook) next_hook(root, table, is_parent, expected);
  double least = Max(static_cast<double>(expected->pages), kLeastPages) * kLeastRowsOfPage;
  if (expected->tuples >= least) return;
  Oid schema = get_namespace_oid("pulse", true);
  if (!OidIsValid(schema) || get_rel_namespace(table) != schema) return;
  expected->tuples = least;
  ListCell* cell;
  foreach (cell, expected->indexlist) {
    auto* index = lfirst_node(IndexOptInfo, cell);
    index->tuples = Max(index->tuples, least);
  }
}

}  // namespace

void expect_rows() {
  next_hook = get_relation_info_hook;
  get_relation_info_hook = pulse_relation_info;
}

}  // namespace pulse
