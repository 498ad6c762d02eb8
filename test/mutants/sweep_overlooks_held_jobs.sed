# A sweep takes no claim in place for all that runs: held jobs are not looked for.
# in: extension
# red: pgtap sweep
s/if (ids.count > 0) PG_RETURN_BOOL(true);//
