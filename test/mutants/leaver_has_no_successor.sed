# Nobody sees to what falls due when the first who waited have gone.
# in: extension
# red: e2e woken
/^void after_slot_freed() {/,/^}/ s/^  signal_successors(tasks);$//
