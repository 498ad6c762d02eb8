# Who found nothing because of a claim that is undone is not woken.
# in: extension
# red: isolation reserved_ranges
/^    note_claimed(cursor->bit);/d
