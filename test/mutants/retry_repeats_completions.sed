# A completed job can be run again.
# in: sql
# red: pgtap retry
s/IF ended.state = 'completed' THEN/IF false THEN/
