# Who found nothing because of a claim that is undone is not woken.
# in: extension
# red: isolation stretches
/^    note_claimed(stream->bit);/d
