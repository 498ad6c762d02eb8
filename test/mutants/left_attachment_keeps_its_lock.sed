# Workers that ended in order leave their locks to the session.
# in: extension
# red: e2e whose_session
s/release_attachment(attachments\[i\].number);/;/
