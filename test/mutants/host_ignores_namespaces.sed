# Processes of other pid namespaces are named: their pids are somebody else's here.
# in: sql
# red: pgtap host_check
s/ AND p.shares_pids AND p.pid IS NOT NULL/ AND p.pid IS NOT NULL/
