# Claims go past what a prepared transaction holds, which nobody tells when it is undone.
# in: extension
# red: isolation reserved_ranges
/if (slot->xid == own_xids\[i\])/d
