// Scans of an index of pulse.job, and the walk over the queues with parked jobs.
#pragma once

#include "access/catalog.hpp"
#include "access/index_lookup.hpp"

namespace pulse {

// A scan of an index of pulse.job, under a snapshot with the writes of this transaction.
struct JobScan {
  Relation job;
  Snapshot snapshot;
  IndexLookup rows;
};

void open_job_scan(JobScan* scan, Oid Catalog::*index, int keys);
void close_job_scan(JobScan* scan);

// One step of a skip scan over the parked index: finds the first queue after (bucket, name).
bool next_queue(IndexLookup* parked, int* bucket, Datum* name, bool same_bucket);

}  // namespace pulse
