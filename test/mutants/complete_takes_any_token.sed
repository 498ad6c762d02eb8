# complete() does not test the token.
# in: extension
# red: pgtap finish
s/^  if (isnull || DatumGetInt64(stored) != token) return false;$//
