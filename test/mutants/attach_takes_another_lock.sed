# Who attaches again in the same session takes another lock.
# in: sql
# red: e2e whose_session
s/CASE WHEN pulse._holds_attachment(h.attachment) THEN h.attachment$/CASE WHEN false THEN 0/
