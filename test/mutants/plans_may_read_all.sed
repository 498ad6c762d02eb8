# Functions may be planned to read whole tables.
# in: sql
# red: cost plans
s/ SET enable_seqscan = off SET jit = off AS/ AS/
