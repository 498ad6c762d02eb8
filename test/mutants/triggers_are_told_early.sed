# What a trigger on the table of jobs writes elsewhere is seen before it is on disk.
# in: extension
# red: e2e shared_flush
/^void \(begin\|end\)_storing(/,/^}/ s/jobs.is_plain && //; s/, bool has_key = false) {/&\n  (void)jobs;/
