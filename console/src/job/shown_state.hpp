// The state of a job for a person. A job that is due later is stored as ready or parked, which no
// reader takes for "later"; scripts read the stored state.
#pragma once

// An SQL expression, from one of the state and one of the due time.
#define PULSE_SHOWN_STATE(state, run_at)                   \
  "CASE WHEN " state " IN ('ready', 'parked') AND " run_at \
  " > pulse.now() THEN 'scheduled' ELSE " state " END AS shown_state"
