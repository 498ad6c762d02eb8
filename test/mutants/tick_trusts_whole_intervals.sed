# Who ticks once per interval finds his own last tick fresh, and sweeps every second time only.
# in: sql
# red: pgtap tick
/^CREATE.* pulse._swept_just_now(/,/^COMMENT/ s|\* 2 / 5|* 4 / 5|
