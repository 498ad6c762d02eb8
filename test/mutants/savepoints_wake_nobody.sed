# Who found nothing because of a claim that a savepoint undoes is not woken.
# in: extension
# red: isolation reserved_ranges
/if (pending.claimed_bits) wake_waiters/d
