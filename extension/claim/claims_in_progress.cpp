#include "claim/claims_in_progress.hpp"

#include "shared/memory.hpp"

namespace pulse {
namespace {

// Guard of both other fields: `lock`. The owner of the id reads `xid` without the lock.
struct Entry {
  slock_t lock;
  TransactionId xid;
  ClaimInProgress claim_in_progress;
};

constexpr int kEntries = 1024;
Entry* entries = nullptr;

Entry* entry_of_xid(TransactionId xid) { return &entries[xid % kEntries]; }

}  // namespace

Size claims_in_progress_size() { return kEntries * sizeof(Entry); }

void create_claims_in_progress() {
  entries = static_cast<Entry*>(shared_area("pg_pulse claims in progress",
                                            claims_in_progress_size(), [](void* area, Size size) {
                                              memset(area, 0, size);
                                              for (int i = 0; i < kEntries; i++)
                                                SpinLockInit(&static_cast<Entry*>(area)[i].lock);
                                            }));
}

void publish_claim(int bit, TimestampTz from) {
  if (!entries) return;
  TransactionId xid = GetCurrentTransactionId();
  Entry* entry = entry_of_xid(xid);
  lock_spin(&entry->lock);
  if (entry->xid != xid) {
    entry->xid = xid;
    entry->claim_in_progress = {0, from};
  }
  entry->claim_in_progress.bits |= UINT64CONST(1) << bit;
  entry->claim_in_progress.from = Max(entry->claim_in_progress.from, from);
  unlock_spin(&entry->lock);
}

ClaimInProgress claim_of_transaction(TransactionId xid) {
  ClaimInProgress claim_in_progress = {0, 0};
  if (!entries) return claim_in_progress;
  Entry* entry = entry_of_xid(xid);
  lock_spin(&entry->lock);
  if (entry->xid == xid) claim_in_progress = entry->claim_in_progress;
  unlock_spin(&entry->lock);
  return claim_in_progress;
}

void withdraw_claims() {
  for (int i = 0; entries && i < kEntries; i++) {
    Entry* entry = &entries[i];
    // Read without the lock: only this backend writes an id of its own transaction, so the entry
    // either keeps the id or gets the id of another backend.
    TransactionId xid = entry->xid;
    if (!TransactionIdIsCurrentTransactionId(xid)) continue;
    lock_spin(&entry->lock);
    if (entry->xid == xid) entry->xid = InvalidTransactionId;
    unlock_spin(&entry->lock);
  }
}

}  // namespace pulse
