#include "liveness/quick_beat.hpp"

#include "access/catalog.hpp"
#include "claim/claim_count.hpp"
#include "liveness/liveness_clock.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/invalidation.hpp"
#include "server/settings.hpp"

namespace pulse {
namespace {

// Whatever may have been written by hand is found after a minute.
constexpr int64 kMaxUs = 60 * USECS_PER_SEC;

struct Remembered {
  bool is_valid;
  int64 worker_id;
  int64 until_us;  // on the monotonic clock
  uint64 claims;
  uint64 attachment;  // 0: none
  Oid heartbeat;      // of which installation
  RowImage row;
};
Remembered remembered;

// What this session has heard of: changed tasks, of which a trigger tells everybody, and what
// became of the heartbeat table, which somebody may have hung something on.
uint64 changes = 0;
Oid known_task = InvalidOid;

void beat_stale(Oid relation) {
  if (OidIsValid(relation) && relation != known_task && relation != remembered.heartbeat) return;
  changes++;
  remembered.is_valid = false;
}

void listen() {
  static bool is_registered = false;
  if (!is_registered) listen_to_invalidations(beat_stale);
  is_registered = true;
  known_task = catalog()->task;
}

bool is_as_remembered(int64 worker_id) {
  uint64 claims;
  return remembered.is_valid && remembered.worker_id == worker_id &&
         remembered.heartbeat == catalog()->heartbeat && monotonic_us() < remembered.until_us &&
         read_claim_count(worker_id, &claims) && claims == remembered.claims &&
         (remembered.attachment == 0 || holds_attachment(remembered.attachment));
}

}  // namespace

BeatLook begin_beat_look(int64 worker_id) {
  listen();
  BeatLook look = {worker_id, false, 0, changes};
  look.is_counted = read_claim_count(worker_id, &look.claims) && claims_have_ended(worker_id);
  return look;
}

void remember_beat(const BeatLook& look, const RowImage& row, uint64 attachment) {
  // What this transaction has done itself may be undone. The SQL of 0.1.0 has no such trigger.
  remembered.is_valid = look.is_counted && look.changes == changes && catalog()->has_index_lanes &&
                        !TransactionIdIsValid(GetTopTransactionIdIfAny());
  remembered.worker_id = look.worker_id;
  remembered.until_us = monotonic_us() + kMaxUs;
  remembered.claims = look.claims;
  remembered.attachment = attachment;
  remembered.heartbeat = catalog()->heartbeat;
  remembered.row = row;
}

bool beat_quickly(int64 worker_id) {
  // Not all news come with the lock: an earlier beat of the same transaction may have it.
  AcceptInvalidationMessages();
  if (!is_as_remembered(worker_id)) return false;
  Relation table = table_open(remembered.heartbeat, RowExclusiveLock);
  FixedColumn moment[] = {{kBeatLive, recall_live_now_us()}, {kBeatLastHeartbeatAt, wall_now()}};
  bool is_done =
      remembered.is_valid && overwrite_image(table, &remembered.row, moment, lengthof(moment));
  remembered.is_valid = is_done;
  table_close(table, NoLock);
  return is_done;
}

}  // namespace pulse
