# Functions may have their plans compiled.
# in: sql
# red: cost plans
s/ SET enable_seqscan = off SET jit = off AS/ SET enable_seqscan = off AS/
