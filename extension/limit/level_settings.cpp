#include "limit/level_settings.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "job/table.hpp"
#include "shared/queue_name.hpp"

namespace pulse {
namespace {

// The tables are open as long as a promotion or an explanation reads the levels of a queue.
struct SettingsReader {
  Relation queue;
  Relation pause;  // null: nothing is paused, or 0.1.0 is installed
  Snapshot snapshot;
};

// Where the settings of a level are stored.
enum class SettingsRow {
  kNone,     // the settings are the defaults
  kMembers,  // for all members of the level above (`level/*`)
  kOwn
};

struct StoredSettings : LevelSettings {
  SettingsRow row;
  bool is_level;    // 0.2.0 has stored the settings
  bool was_paused;  // 0.1.0 has stored a pause
};

StoredSettings stored_settings(const SettingsReader& reader, Datum name) {
  StoredSettings found = {};
  found.concurrency = 1;
  found.total = kUnlimited;
  found.weight = 1;
  const Catalog* known = catalog();
  with_row_of_text(reader.queue, known->queue_key, name, reader.snapshot,
                   [&found, known](TupleTableSlot* row) {
                     found.row = SettingsRow::kOwn;
                     found.concurrency = DatumGetInt32(value_of(row, kQueueConcurrency));
                     found.was_paused = DatumGetBool(value_of(row, kQueuePaused));
                     if (known->queue_is_level == InvalidAttrNumber) return;
                     found.is_level = DatumGetBool(value_of(row, known->queue_is_level));
                     NullableDatum total = field_of(row, known->queue_total);
                     if (!total.isnull) found.total = DatumGetInt32(total.value);
                     found.strict = DatumGetBool(value_of(row, known->queue_strict));
                     found.fair = DatumGetBool(value_of(row, known->queue_fair));
                     found.weight = DatumGetInt32(value_of(row, known->queue_weight));
                     found.rate = rate_of(row);
                   });
  return found;
}

struct Pauses {
  bool is_named;  // an operator has paused or resumed this name
  bool is_paused;
  bool by_end;
};

// The row of the operator comes first. Of the rows of ends, one row is enough.
Pauses pauses_of(const SettingsReader& reader, Datum name) {
  Pauses found = {};
  if (!reader.pause) return found;
  IndexLookup rows;
  open_index_lookup(&rows, reader.pause, catalog()->queue_pause_key, reader.snapshot, 1);
  ScanKeyData key;
  init_text_key(&key, 1, BTEqualStrategyNumber, F_TEXTEQ, name);
  seek_keys(&rows, &key);
  while (!found.by_end && next_row(&rows)) {
    found.by_end = DatumGetInt64(value_of(rows.row, kPauseJobId)) != 0;
    if (found.by_end) break;
    found.is_named = true;
    found.is_paused = DatumGetBool(value_of(rows.row, kPauseIsPaused));
  }
  close_index_lookup(&rows);
  return found;
}

Datum members_of(Datum level) {
  return CStringGetTextDatum(psprintf("%s/*", TextDatumGetCString(level)));
}

SettingsReader open_settings(Snapshot snapshot) {
  const Catalog* known = catalog();
  SettingsReader reader = {table_open(known->queue, AccessShareLock), nullptr, snapshot};
  if (!OidIsValid(known->queue_pause)) return reader;
  reader.pause = table_open(known->queue_pause, AccessShareLock);
  // Mostly no queue is paused: then the size of the table answers at once for all levels.
  if (RelationGetNumberOfBlocks(reader.pause) > 0) return reader;
  table_close(reader.pause, AccessShareLock);
  reader.pause = nullptr;
  return reader;
}

void close_settings(const SettingsReader& reader) {
  if (reader.pause) table_close(reader.pause, AccessShareLock);
  table_close(reader.queue, AccessShareLock);
}

// A member of a level without a row of its own has the settings stored for all members (`level/*`).
// A member whose name was neither paused nor resumed has the pause of all members. A row stored by
// 0.1.0 holds only for the queue of exactly this name.
StoredSettings settings_of_level(const SettingsReader& reader, Datum name, Datum parent,
                                 bool is_queue) {
  StoredSettings found = stored_settings(reader, name);
  Pauses own = pauses_of(reader, name);
  if (!own.is_named && found.was_paused && is_queue) own = {true, true, own.by_end};
  bool has_row = found.row == SettingsRow::kOwn;
  if (parent && !(has_row && own.is_named)) {
    Datum members = members_of(parent);
    if (!has_row) {
      StoredSettings shared = stored_settings(reader, members);
      shared.row = SettingsRow::kMembers;
      if (shared.is_level) found = shared;
    }
    if (!own.is_named) own.is_paused = pauses_of(reader, members).is_paused;
  }
  found.paused = own.is_paused;
  found.paused_by_end = own.by_end;
  return found;
}

// The weight of a queue beneath a fair level is the weight of its own row, else of the nearest
// `level/*` above.
int weight_of_queue(const SettingsReader& reader, const Datum* names, const StoredSettings* of,
                    int own) {
  if (of[own].row != SettingsRow::kNone) return of[own].weight;
  for (int i = own - 1; i > 0; i--) {
    if (of[i].row == SettingsRow::kMembers) return of[i].weight;
    if (of[i].row == SettingsRow::kNone) continue;
    StoredSettings members = stored_settings(reader, members_of(names[i - 1]));
    if (members.is_level) return members.weight;
  }
  return 1;
}

}  // namespace

void read_settings(Snapshot snapshot, const Datum* names, int count, LevelSettings* settings) {
  SettingsReader reader = open_settings(snapshot);
  StoredSettings stored[kMaxLevels];
  int own = count - 1;
  bool is_member = false;
  for (int i = 0; i < count; i++) {
    stored[i] = settings_of_level(reader, names[i], i > 0 ? names[i - 1] : 0, i == own);
    settings[i] = stored[i];
    if (i == own) settings[i].weight = is_member ? weight_of_queue(reader, names, stored, own) : 1;
    is_member |= stored[i].fair;
  }
  close_settings(reader);
}

}  // namespace pulse
