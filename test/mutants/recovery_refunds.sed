# A recovery gives the attempt back.
# in: sql
# red: isolation complete_vs_sweep
/attempts   = j.attempts/ s/v.outcome = 'released'/v.outcome IN ('released', 'lost')/
