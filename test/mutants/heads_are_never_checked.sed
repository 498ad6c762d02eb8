# What nobody told of is not looked for below the head.
# in: extension
# red: cost claims
/^HeadFound find_head(/,/^}/s/head->expires <= now || head->expires - now > kLongestUs, /false, /
