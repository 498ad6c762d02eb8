# A savepoint that is rolled back does not take back that a worker let go of its session.
# in: extension
# red: e2e whose_session
s/^  keep_attachments(undone);//
