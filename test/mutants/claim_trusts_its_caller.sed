# Statements of the library's leave operators to the caller's search_path.
# in: extension
# red: pgtap hostile
s/OPERATOR(pg_catalog\.=)/=/
