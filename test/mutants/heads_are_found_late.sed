# A claim looks for the first entry of a priority, behind pages of dead ones, before its head.
# in: extension
# red: cost claims
/known_count = marked_priorities/d
