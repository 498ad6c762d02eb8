# A worker with a suspect gets more.
# file: extension/claim.cpp
# red: isolation claim_vs_alone
/^void settle_alone_job(/,/^}/ s/^ *if (mine.*state_running) claim->closed = true;//
