# A number that waited for an adoption has the epoch of before.
# in: extension
# red: isolation claim_vs_adopt
/^int64 next_number(/,/^}/ {
    s/^  int64 number = /  int64 epoch = number_epoch();\n  int64 number = /
    s/return number_epoch()/return epoch/
}
