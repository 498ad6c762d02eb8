# Each installation counts tokens and worker ids from one.
# in: sql
# red: e2e whose_session
/^SELECT pg_catalog.setval(s.name/,/;$/d
