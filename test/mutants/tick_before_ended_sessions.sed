# A sweep's own tick hides when sessions ended before it.
# in: sql
# red: e2e session_end
s/stamped := pulse._stamp_ended_sessions(/PERFORM pulse._tick(); &/
