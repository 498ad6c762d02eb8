# The end of a session pushes out the one before.
# in: extension
# red: e2e whose_session
s/bucket->noted++ % kEndsPerBucket/0/
