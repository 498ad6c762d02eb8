# What nobody told of is not looked for below the head.
# in: extension
# red: cost claims
/^FoundMark find_mark(/,/^}/s/mark->expires <= now || mark->expires - now > kMaxExpiryUs, /false, /
