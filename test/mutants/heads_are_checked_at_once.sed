# One claim looks at everything below an expired head.
# in: extension
# red: cost claims
s/^constexpr int kMaxChecked = 1000;/constexpr int kMaxChecked = 1000000;/
