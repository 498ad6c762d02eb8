# No call that ends an attempt tests the token.
# in: extension
# red: isolation zombie_vs_sweep
/^bool matches(/,/^}/ s/if (of.column == 0) return true;/return true;/
