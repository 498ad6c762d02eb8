# After pg_upgrade numbers go on in the epochs of before.
# in: extension
# red: pgtap installation
/^void move_installation(/,/^}/ s/raise ? reading.highest + 1 : reading.epoch_base/reading.epoch_base/
