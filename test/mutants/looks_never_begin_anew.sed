# Looks below a head go on where there is nothing left, and see no row before it.
# in: extension
# red: cost claims
s/^      mark->checked = kFront;$//
