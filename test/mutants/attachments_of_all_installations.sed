# Attachments are counted anew by each installation.
# in: extension
# red: e2e whose_session
s/return static_cast<uint64>(sequence & PG_INT32_MAX) << 32 | number;/return number;/
