# What is known of the queues of a dropped installation counts for the next one.
# in: extension
# red: e2e drop_extension
s/if (!database || pg_atomic_read_u32(&database->job) == catalog()->job)/if (true)/
