# A function with the rights of its owner looks for names where its caller says.
# in: sql
# red: pgtap hostile
s/  SET search_path = pg_catalog, pg_temp AS/  AS/
