# The install script takes a schema that somebody else made.
# in: sql
# red: pgtap install
s/IF NOT EXISTS (SELECT FROM pg_roles AS r/IF false AND NOT EXISTS (SELECT FROM pg_roles AS r/
