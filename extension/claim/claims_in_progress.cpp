#include "claim/claims_in_progress.hpp"

#include "shared/memory.hpp"

namespace pulse {
namespace {

// `lock` guards both other fields.
struct Slot {
  slock_t lock;
  TransactionId xid;
  ClaimInProgress claim_in_progress;
};

constexpr int kSlots = 1024;
Slot* slots = nullptr;

Slot* slot_of_xid(TransactionId xid) { return &slots[xid % kSlots]; }

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
  Slot* slot = slot_of_xid(xid);
  lock_spin(&slot->lock);
  if (slot->xid != xid) {
    slot->xid = xid;
    slot->claim_in_progress = {0, from};
  }
  slot->claim_in_progress.bits |= UINT64CONST(1) << bit;
  slot->claim_in_progress.from = Max(slot->claim_in_progress.from, from);
  unlock_spin(&slot->lock);
}

ClaimInProgress claim_of_transaction(TransactionId xid) {
  ClaimInProgress claim_in_progress = {0, 0};
  if (!slots) return claim_in_progress;
  Slot* slot = slot_of_xid(xid);
  lock_spin(&slot->lock);
  if (slot->xid == xid) claim_in_progress = slot->claim_in_progress;
  unlock_spin(&slot->lock);
  return claim_in_progress;
}

void withdraw_claims() {
  for (int i = 0; slots && i < kSlots; i++) {
    Slot* slot = &slots[i];
    // Read without the lock: only this backend writes an id of its own transaction, so the entry
    // either keeps the id or gets the id of another backend.
    TransactionId xid = slot->xid;
    if (!TransactionIdIsCurrentTransactionId(xid)) continue;
    lock_spin(&slot->lock);
    if (slot->xid == xid) slot->xid = InvalidTransactionId;
    unlock_spin(&slot->lock);
  }
}

}  // namespace pulse
