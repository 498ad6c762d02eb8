# A session's end is noted without its own clock.
# in: extension
# red: e2e session_end
s/attachments\[i\].number, now, clock_offset_us()}/attachments[i].number, now, 0}/
