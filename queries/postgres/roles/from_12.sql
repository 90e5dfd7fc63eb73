-- roles: superuser and connection limit of each role
-- columns: oid, name, superuser, connection_limit
SELECT r.oid,
       r.rolname::pg_catalog.text AS name,
       r.rolsuper AS superuser,
       r.rolconnlimit AS connection_limit
FROM pg_catalog.pg_roles r
ORDER BY r.oid
