# release() consumes the attempt.
# file: sql/finish.sql
# red: isolation release_vs_sweep
s/attempts   = j.attempts - (v.outcome = 'released')::int,/attempts   = j.attempts,/
