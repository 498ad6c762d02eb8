# One claim looks at everything below an expired head.
# in: extension
# red: cost claims
s/^constexpr int kLookAtOnce = 1000;/constexpr int kLookAtOnce = 1000000;/
