# A worker is told of a job whose key its producer has locked still.
# in: extension
# red: e2e shared_flush
/^void \(begin\|end\)_storing(/,/^}/ s/ && !has_key) / \&\& (has_key || true)) /
