#include "claim/claims_in_progress.hpp"

#include "server/shared_memory.hpp"

namespace pulse {
namespace {

struct Place {
  slock_t lock;
  TransactionId xid;
  ClaimInProgress claim_in_progress;
};

constexpr int kPlaces = 1024;
Place* places = nullptr;

// Savepoints have ids of their own.
constexpr int kMaxOwn = 8;
TransactionId own[kMaxOwn];
int own_count = 0;

Place* place_of(TransactionId xid) { return &places[xid % kPlaces]; }

bool is_own(TransactionId xid) {
  for (int i = 0; i < own_count; i++)
    if (own[i] == xid) return true;
  return false;
}

}  // namespace

Size claims_in_progress_size() { return kPlaces * sizeof(Place); }

void create_claims_in_progress() {
  places = static_cast<Place*>(shared_area("pg_pulse published claims", claims_in_progress_size(),
                                           [](void* area, Size size) {
                                             memset(area, 0, size);
                                             for (int i = 0; i < kPlaces; i++)
                                               SpinLockInit(&static_cast<Place*>(area)[i].lock);
                                           }));
}

void publish_claim(int bit, TimestampTz from) {
  if (!places) return;
  TransactionId xid = GetCurrentTransactionId();
  if (!is_own(xid)) {
    if (own_count == kMaxOwn) return;
    own[own_count++] = xid;
  }
  Place* place = place_of(xid);
  SpinLockAcquire(&place->lock);
  if (place->xid != xid) {
    place->xid = xid;
    place->claim_in_progress = {0, from};
  }
  place->claim_in_progress.bits |= UINT64CONST(1) << bit;
  place->claim_in_progress.from = Max(place->claim_in_progress.from, from);
  SpinLockRelease(&place->lock);
}

ClaimInProgress claim_of_transaction(TransactionId xid) {
  ClaimInProgress claim_in_progress = {0, 0};
  if (!places) return claim_in_progress;
  Place* place = place_of(xid);
  SpinLockAcquire(&place->lock);
  if (place->xid == xid) claim_in_progress = place->claim_in_progress;
  SpinLockRelease(&place->lock);
  return claim_in_progress;
}

void withdraw_claims() {
  for (int i = 0; i < own_count; i++) {
    Place* place = place_of(own[i]);
    SpinLockAcquire(&place->lock);
    if (place->xid == own[i]) place->xid = InvalidTransactionId;
    SpinLockRelease(&place->lock);
  }
  own_count = 0;
}

}  // namespace pulse
