# release() consumes the attempt.
# in: sql
# red: isolation release_vs_sweep
s/attempts   = j.attempts - (v.outcome = 'released')::int,/attempts   = j.attempts,/
