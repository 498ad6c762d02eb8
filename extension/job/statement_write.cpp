#include "job/statement_write.hpp"

#include "access/catalog.hpp"
#include "access/local_settings.hpp"
#include "job/table.hpp"
#include "server/compat.hpp"

extern "C" {
#include "lib/stringinfo.h"
}

namespace pulse {
namespace {

constexpr int kMaxParameters = kMaxColumns + 1;

struct Statement {
  StringInfoData text;
  int count;
  Oid types[kMaxParameters];
  Datum values[kMaxParameters];
  char nulls[kMaxParameters + 1];
};

// A plan that the session keeps. A session keeps few plans: one per table and set of changed
// columns. A table that is made anew has other types, and so plans of its own.
struct Plan {
  Plan* next;
  Oid table;
  char* text;
  SPIPlanPtr plan;
};

Plan* plans;

SPIPlanPtr plan_of(Relation table, Statement* statement) {
  for (Plan* plan = plans; plan; plan = plan->next)
    if (plan->table == RelationGetRelid(table) && strcmp(plan->text, statement->text.data) == 0)
      return plan->plan;
  SPIPlanPtr prepared = SPI_prepare(statement->text.data, statement->count, statement->types);
  if (!prepared || SPI_keepplan(prepared))
    elog(ERROR, "could not prepare: %s", statement->text.data);
  auto* plan = static_cast<Plan*>(MemoryContextAlloc(TopMemoryContext, sizeof(Plan)));
  *plan = {plans, RelationGetRelid(table),
           MemoryContextStrdup(TopMemoryContext, statement->text.data), prepared};
  plans = plan;
  return prepared;
}

const char* qualified_name(Relation table) {
  return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(table)),
                                    RelationGetRelationName(table));
}

Statement* new_statement() {
  auto* statement = static_cast<Statement*>(palloc0(sizeof(Statement)));
  initStringInfo(&statement->text);
  return statement;
}

// Returns the number of the parameter.
int add_parameter(Statement* statement, Oid type, Datum value, bool is_null) {
  int at = statement->count++;
  statement->types[at] = type;
  statement->values[at] = is_null ? static_cast<Datum>(0) : value;
  statement->nulls[at] = is_null ? 'n' : ' ';
  return statement->count;
}

bool is_written(Form_pg_attribute column) {
  return !column->attisdropped && column->attgenerated == '\0';
}

void add_place(Statement* statement, ItemPointer tid) {
  appendStringInfo(&statement->text, " WHERE this_row.ctid = $%d",
                   add_parameter(statement, TIDOID, PointerGetDatum(tid), false));
}

[[noreturn]] void refuse_suppression(Relation table) {
  ereport(ERROR,
          (errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
           errmsg("a trigger, rule or policy of pulse.%s suppressed a row",
                  RelationGetRelationName(table)),
           errdetail("Without the row, what pg_pulse answers would not be true."),
           errhint("Let BEFORE ROW triggers return the row, or raise an error of their own.")));
  pg_unreachable();
}

// The row that RETURNING returned.
HeapTuple returned_row(Relation table, uint64 at, MemoryContext context) {
  bool isnull;
  Datum row = SPI_getbinval(SPI_tuptable->vals[at], SPI_tuptable->tupdesc, 1, &isnull);
  HeapTupleHeader header = header_of(row);
  HeapTupleData stored = {};
  stored.t_len = HeapTupleHeaderGetDatumLength(header);
  ItemPointerSetInvalid(&stored.t_self);
  stored.t_tableOid = RelationGetRelid(table);
  stored.t_data = header;
  MemoryContext old = MemoryContextSwitchTo(context);
  HeapTuple copy = heap_copytuple(&stored);
  MemoryContextSwitchTo(old);
  return copy;
}

// Runs a statement that must write `count` rows, and returns the rows in `rows` unless `rows` is
// NULL. An invalid snapshot stands for the transaction's snapshot.
void run_statement(Relation table, Statement* statement, Snapshot snapshot, uint64 count,
                   HeapTuple* rows) {
  MemoryContext context = CurrentMemoryContext;
  under_statement_settings([&] {
    // A plan made while the table is small must not read the whole table when it has grown.
    set_in_level("enable_seqscan", "off");
    if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
    int done = SPI_execute_snapshot(plan_of(table, statement), statement->values, statement->nulls,
                                    snapshot, InvalidSnapshot, false, true, 0);
    if (done < 0) elog(ERROR, "could not run: %s", statement->text.data);
    if (SPI_processed != count || (rows && !SPI_tuptable)) refuse_suppression(table);
    for (uint64 i = 0; rows && i < count; i++) rows[i] = returned_row(table, i, context);
    SPI_finish();
  });
  pfree(statement->text.data);
  pfree(statement);
}

// Returns the rows as an array of the table's row type.
Datum array_of_rows(Relation table, HeapTuple* rows, int count) {
  auto* elements = static_cast<Datum*>(palloc(sizeof(Datum) * count));
  for (int i = 0; i < count; i++)
    elements[i] = heap_copy_tuple_as_datum(rows[i], RelationGetDescr(table));
  return PointerGetDatum(
      construct_array(elements, count, table->rd_rel->reltype, -1, false, TYPALIGN_DOUBLE));
}

void add_names(Statement* statement, TupleDesc shape, int columns, const char* of) {
  const char* comma = "";
  for (int i = 0; i < columns; i++) {
    Form_pg_attribute column = TupleDescAttr(shape, i);
    if (!is_written(column)) continue;
    appendStringInfo(&statement->text, "%s%s%s", comma, of,
                     quote_identifier(NameStr(column->attname)));
    comma = ", ";
  }
}

// The triggers of the extension count the rows that statements write; C code notes the rows that it
// writes.
bool has_trigger_of_others(const TriggerDesc* triggers) {
  for (int i = 0; triggers && i < triggers->numtriggers; i++)
    if (triggers->triggers[i].tgfoid != catalog()->count_written_job) return true;
  return false;
}

}  // namespace

bool asks_for_statements(Relation table) {
  const TupleConstr* constraints = table->rd_att->constr;
  return has_trigger_of_others(table->trigdesc) || table->rd_rules ||
         table->rd_rel->relforcerowsecurity || (constraints && constraints->num_check > 0);
}

void insert_by_statement(Relation table, HeapTuple* rows, int count, int columns) {
  Statement* statement = new_statement();
  TupleDesc shape = RelationGetDescr(table);
  appendStringInfo(&statement->text, "INSERT INTO %s AS this_row (", qualified_name(table));
  add_names(statement, shape, columns, "");
  appendStringInfoString(&statement->text, ") SELECT ");
  add_names(statement, shape, columns, "new_row.");
  (void)add_parameter(statement, get_array_type(table->rd_rel->reltype),
                      array_of_rows(table, rows, count), false);
  appendStringInfoString(&statement->text,
                         " FROM pg_catalog.unnest($1) AS new_row RETURNING this_row");
  run_statement(table, statement, InvalidSnapshot, count, rows);
}

HeapTuple update_by_statement(Relation table, Snapshot snapshot, ItemPointer tid,
                              const JobChange& change) {
  Statement* statement = new_statement();
  TupleDesc shape = RelationGetDescr(table);
  appendStringInfo(&statement->text, "UPDATE ONLY %s AS this_row SET ", qualified_name(table));
  for (int i = 0; i < Min(shape->natts, kMaxColumns); i++) {
    Form_pg_attribute column = TupleDescAttr(shape, i);
    if (!change.replaces[i] || !is_written(column)) continue;
    const char* comma = statement->count ? ", " : "";
    appendStringInfo(&statement->text, "%s%s = $%d", comma,
                     quote_identifier(NameStr(column->attname)),
                     add_parameter(statement, column->atttypid, change.values[i], change.nulls[i]));
  }
  add_place(statement, tid);
  appendStringInfoString(&statement->text, " RETURNING this_row");
  HeapTuple row;
  run_statement(table, statement, snapshot, 1, &row);
  return row;
}

void delete_by_statement(Relation table, Snapshot snapshot, ItemPointer tid) {
  Statement* statement = new_statement();
  appendStringInfo(&statement->text, "DELETE FROM ONLY %s AS this_row", qualified_name(table));
  add_place(statement, tid);
  run_statement(table, statement, snapshot, 1, nullptr);
}

}  // namespace pulse
