// Locks that only this extension takes: advisory locks with a class of their own, which no SQL
// function can name. They live until the transaction ends; the session lock of an attached worker
// until its session ends, or lets go of all (pg_advisory_unlock_all, DISCARD ALL).
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The fourth field of the lock tag; SQL's advisory locks use 1 and 2.
enum class LockKind : uint16 {
  kWorker = 0x5001,
  kQueue,
  kKey,
  kKeyBucket,
  kAttachment,
};

// Waits.
void advisory_lock(LockKind kind, uint64 key, LOCKMODE mode);

// Never waits; false when somebody else has it.
bool try_advisory_lock(LockKind kind, uint64 key, LOCKMODE mode);

// The session lock that stands for an attached worker.
void hold_attachment(uint64 attachment);
void release_attachment(uint64 attachment);

// Whether this session is the one that the attachment stands for.
bool holds_attachment(uint64 attachment);

// Whether no session holds it, without keeping it.
bool attachment_is_free(uint64 attachment);

}  // namespace pulse
