# Claims go past what a claim holds in front of where it began.
# in: extension
# red: isolation stretches
s/stream->scan.run_at >= claim->announcement.from/true/
