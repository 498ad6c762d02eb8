# A session that has loaded the old library may update.
# in: sql/upgrade
# red: pgtap upgrade
s/RAISE EXCEPTION 'the library of pg_pulse that/RAISE DEBUG 'the library of pg_pulse that/
