# Claims go past what a person holds, who tells nobody.
# in: extension
# red: isolation stretches
s/return ((claim->announcement.bits >> stream->bit) & 1) &&$/return true ||/
