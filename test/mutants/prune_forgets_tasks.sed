# Completed jobs are deleted at one age, whatever their task says.
# in: sql
# red: pgtap prune
/^CREATE.* pulse._prune_completed(/,/^COMMENT/ s/^                pulse._us(t.keep_completed), /                /
