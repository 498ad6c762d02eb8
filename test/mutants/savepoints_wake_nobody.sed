# Who found nothing because of a claim that a savepoint undoes is not woken.
# in: extension
# red: isolation stretches
/if (pending.claimed_bits) tell_waiters/d
