#include "server/invalidation.hpp"

namespace pulse {
namespace {

constexpr int kMaxListeners = 4;
InvalidationListener listeners[kMaxListeners];
int count = 0;

extern "C" void pulse_relation_changed(Datum, Oid relation) {
  for (int i = 0; i < count; i++) listeners[i](relation);
}

}  // namespace

void listen_to_invalidations(InvalidationListener listener) {
  if (count == kMaxListeners) elog(ERROR, "more listeners to invalidations than expected");
  if (count == 0) CacheRegisterRelcacheCallback(pulse_relation_changed, 0);
  listeners[count++] = listener;
}

}  // namespace pulse
