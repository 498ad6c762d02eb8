# A sweep that is undone with a savepoint is not asked for again.
# in: extension
# red: e2e session_end
s/if (pending.sweeps && pending.sweeps_in >= undone) request_sweep(database);//
