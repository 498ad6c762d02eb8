# A job that fails for good keeps no payload that came with the failure.
# in: extension
# red: pgtap attempt
s/^  put(kFinishedPayload, job.payload);$//
