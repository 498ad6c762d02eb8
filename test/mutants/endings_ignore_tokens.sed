# What SQL functions end may be the attempt of another claim than they saw.
# in: extension
# red: pgtap attempt
s/^  \*of = nulls\[kEndingToken\] ? AttemptOf{0, 0}/  *of = true ? AttemptOf{0, 0}/
