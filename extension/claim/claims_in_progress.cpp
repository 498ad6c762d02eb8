#include "claim/claims_in_progress.hpp"

#include "server/shared_memory.hpp"

namespace pulse {
namespace {

struct Slot {
  slock_t lock;
  TransactionId xid;
  ClaimInProgress claim_in_progress;
};

constexpr int kSlots = 1024;
Slot* slots = nullptr;

// The xids under which this transaction has published claims; each savepoint has its own_xids xid.
constexpr int kMaxOwnXids = 8;
TransactionId own_xids[kMaxOwnXids];
int own_xid_count = 0;

Slot* slot_of_xid(TransactionId xid) { return &slots[xid % kSlots]; }

bool is_own_xid(TransactionId xid) {
  for (int i = 0; i < own_xid_count; i++)
    if (own_xids[i] == xid) return true;
  return false;
}

}  // namespace

Size claims_in_progress_size() { return kSlots * sizeof(Slot); }

void create_claims_in_progress() {
  slots = static_cast<Slot*>(shared_area("pg_pulse claims in progress", claims_in_progress_size(),
                                         [](void* area, Size size) {
                                           memset(area, 0, size);
                                           for (int i = 0; i < kSlots; i++)
                                             SpinLockInit(&static_cast<Slot*>(area)[i].lock);
                                         }));
}

void publish_claim(int bit, TimestampTz from) {
  if (!slots) return;
  TransactionId xid = GetCurrentTransactionId();
  if (!is_own_xid(xid)) {
    if (own_xid_count == kMaxOwnXids) return;
    own_xids[own_xid_count++] = xid;
  }
  Slot* slot = slot_of_xid(xid);
  SpinLockAcquire(&slot->lock);
  if (slot->xid != xid) {
    slot->xid = xid;
    slot->claim_in_progress = {0, from};
  }
  slot->claim_in_progress.bits |= UINT64CONST(1) << bit;
  slot->claim_in_progress.from = Max(slot->claim_in_progress.from, from);
  SpinLockRelease(&slot->lock);
}

ClaimInProgress claim_of_transaction(TransactionId xid) {
  ClaimInProgress claim_in_progress = {0, 0};
  if (!slots) return claim_in_progress;
  Slot* slot = slot_of_xid(xid);
  SpinLockAcquire(&slot->lock);
  if (slot->xid == xid) claim_in_progress = slot->claim_in_progress;
  SpinLockRelease(&slot->lock);
  return claim_in_progress;
}

void withdraw_claims() {
  for (int i = 0; i < own_xid_count; i++) {
    Slot* slot = slot_of_xid(own_xids[i]);
    SpinLockAcquire(&slot->lock);
    if (slot->xid == own_xids[i]) slot->xid = InvalidTransactionId;
    SpinLockRelease(&slot->lock);
  }
  own_xid_count = 0;
}

}  // namespace pulse
