# An observer may read the table of jobs.
# in: sql
# red: pgtap roles
s/THEN ARRAY\['settings', /&'job', /
