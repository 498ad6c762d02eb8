// The oids of the extension's tables, indexes and enum values in this database. A session reads
// them once, and again after a change of any of the objects. It reads the oid of an index under a
// lock of the index's table: while it holds the lock, REINDEX CONCURRENTLY does not drop the index.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct Catalog {
  uint64 generation;  // changes with each change of the extension or its installation
  Oid schema;
  Oid job;
  Oid job_key;
  Oid job_claim_idx;
  Oid job_running_idx;
  Oid job_parked_idx;
  Oid job_parked_due_idx;
  Oid job_open_idx;
  Oid job_waiting_key_idx;
  Oid job_running_key_idx;
  Oid job_start_by_idx;
  Oid job_waits_idx;
  Oid job_successor_idx;
  Oid job_undecided_idx;
  bool has_index_lanes;  // since 0.2.0, as are pulse_internal, claim_batch and its index
  Oid claim_batch;
  Oid claim_batch_idx;
  Oid heartbeat;
  Oid heartbeat_key;
  Oid worker;
  Oid worker_key;
  Oid attempt;
  Oid finished_job;
  Oid task;
  Oid task_key;
  AttrNumber task_queue;  // since 0.2.0, as is the next; else invalid
  AttrNumber task_dead_letter;
  Oid queue;
  Oid queue_key;
  AttrNumber queue_total;  // since 0.2.0, as are the next four; else invalid
  AttrNumber queue_is_level;
  AttrNumber queue_strict;
  AttrNumber queue_fair;
  AttrNumber queue_weight;
  Oid queue_pause;  // since 0.2.0
  Oid queue_pause_key;
  Oid queue_rate;
  Oid queue_rate_key;
  AttrNumber queue_setting_rate;
  AttrNumber queue_setting_per;
  AttrNumber queue_setting_burst;
  Oid clock;
  Oid job_id_seq;
  Oid token_seq;
  Oid worker_id_seq;
  Oid attachment_seq;
  Oid id_place_seq;  // since 0.2.0, as are the next seven
  Oid installation;
  Oid dependency;
  Oid dependency_parent_idx;
  Oid superseded_job;
  Oid superseded_job_key;
  Oid remembered_key;
  Oid remembered_key_key;
  Oid count_written_job;  // the function of the triggers of pulse.job
  Oid state_ready;
  Oid state_parked;
  Oid state_running;
  Oid finished_completed;
  Oid finished_failed;
  Oid finished_quarantined;
  Oid finished_cancelled;
};

// The number of indexes of pulse.job above.
constexpr int kJobIndexes = 12;

// Inline, because each row that a claim or an end writes asks several times.
extern Catalog known_catalog;
extern bool is_catalog_known;
const Catalog* read_catalog();

// Raises when the extension is not installed in this database, or its SQL is newer than this
// library.
inline const Catalog* catalog() { return is_catalog_known ? &known_catalog : read_catalog(); }
// Returns the oid of one table alone: a session that only reads the clock needs no other table, and
// each table costs lookups.
Oid clock_table();

// False in a session that knows a later version to be installed. Costs nothing, and cannot raise.
bool may_be_0_1_0();

// Finds a function of schema pulse_internal; 0.1.0 has it in pulse, with an underscore before the
// name.
Oid internal_function(const char* name, int count, const Oid* types);

// Values of pulse.job.index_lane: which partial indexes contain the job's row.
constexpr char kLaneOpen = 'o';
constexpr char kLaneParked = 'p';
constexpr char kLaneRunning = 'r';
constexpr char kLaneWaits = 'w';
constexpr char kLaneUndecided = 'k';

}  // namespace pulse
