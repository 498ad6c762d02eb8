# Jobs that become ready behind the place where claims begin are not told.
# in: extension
# red: isolation claim_vs_low_water_mark
s/if (!buckets || !database) return;/return;/
