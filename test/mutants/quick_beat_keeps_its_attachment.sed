# A beat without a look does not ask whether its session is still attached.
# in: extension
# red: isolation quick_heartbeat
s/ || holds_attachment(remembered.attachment))/ || true)/
