# A worker with a suspect gets more.
# in: extension
# red: isolation claim_vs_alone
/^void check_isolated_job(/,/^}/ s/^ *if (is_with.*state_running)) claim->closed = true;//
