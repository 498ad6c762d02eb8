# An update revokes from all objects, and so takes users' grants for its own.
# in: sql
# red: pgtap upgrade
s/WHERE i.classoid = d.classid AND i.objoid/WHERE false AND i.objoid/
