# A worker that is deregistered lets go of its session before that is committed.
# in: extension
# red: e2e whose_session
s/{attachment, pulse::AttachmentState::kLeaving,/{attachment, pulse::AttachmentState::kReleasable,/
