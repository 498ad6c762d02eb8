# Nobody sees to what falls due when the first who waited have gone.
# in: extension
# red: e2e woken
/^void leave_place() {/,/^}/ s/^  signal_successors(tasks);$//
