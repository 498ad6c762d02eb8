#include "claim/claims_in_progress.hpp"

#include "server/shared_memory.hpp"

namespace pulse {
namespace {

struct Place {
  slock_t lock;
  TransactionId xid;
  Announcement announcement;
};

constexpr int kPlaces = 1024;
Place* places = nullptr;

// Savepoints have ids of their own.
constexpr int kMostOwn = 8;
TransactionId own[kMostOwn];
int own_count = 0;

Place* place_of(TransactionId xid) { return &places[xid % kPlaces]; }

bool is_own(TransactionId xid) {
  for (int i = 0; i < own_count; i++)
    if (own[i] == xid) return true;
  return false;
}

}  // namespace

Size announcements_size() { return kPlaces * sizeof(Place); }

void create_announcements() {
  places = static_cast<Place*>(
      shared_area("pg_pulse announced claims", announcements_size(), [](void* area, Size size) {
        memset(area, 0, size);
        for (int i = 0; i < kPlaces; i++) SpinLockInit(&static_cast<Place*>(area)[i].lock);
      }));
}

void announce_claim(int bit, TimestampTz from) {
  if (!places) return;
  TransactionId xid = GetCurrentTransactionId();
  if (!is_own(xid)) {
    if (own_count == kMostOwn) return;
    own[own_count++] = xid;
  }
  Place* place = place_of(xid);
  SpinLockAcquire(&place->lock);
  if (place->xid != xid) {
    place->xid = xid;
    place->announcement = {0, from};
  }
  place->announcement.bits |= UINT64CONST(1) << bit;
  place->announcement.from = Max(place->announcement.from, from);
  SpinLockRelease(&place->lock);
}

Announcement announcement_of(TransactionId xid) {
  Announcement announcement = {0, 0};
  if (!places) return announcement;
  Place* place = place_of(xid);
  SpinLockAcquire(&place->lock);
  if (place->xid == xid) announcement = place->announcement;
  SpinLockRelease(&place->lock);
  return announcement;
}

void withdraw_announcements() {
  for (int i = 0; i < own_count; i++) {
    Place* place = place_of(own[i]);
    SpinLockAcquire(&place->lock);
    if (place->xid == own[i]) place->xid = InvalidTransactionId;
    SpinLockRelease(&place->lock);
  }
  own_count = 0;
}

}  // namespace pulse
