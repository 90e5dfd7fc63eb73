-- login: what this login may see and do
-- columns: user, superuser, replication, read_all_stats, read_all_settings, signal_backend, use_reserved_connections,
-- columns: signal_autovacuum
SELECT r.rolname::pg_catalog.text AS "user",
       r.rolsuper AS superuser,
       r.rolreplication AS replication,
       pg_catalog.pg_has_role(r.oid, 'pg_read_all_stats', 'USAGE') AS read_all_stats,
       pg_catalog.pg_has_role(r.oid, 'pg_read_all_settings', 'USAGE') AS read_all_settings,
       pg_catalog.pg_has_role(r.oid, 'pg_signal_backend', 'USAGE') AS signal_backend,
       (SELECT pg_catalog.pg_has_role(r.oid, p.oid, 'USAGE') FROM pg_catalog.pg_roles p
         WHERE p.rolname = 'pg_use_reserved_connections') AS use_reserved_connections,
       (SELECT pg_catalog.pg_has_role(r.oid, p.oid, 'USAGE') FROM pg_catalog.pg_roles p
         WHERE p.rolname = 'pg_signal_autovacuum_worker') AS signal_autovacuum
FROM pg_catalog.pg_roles r
WHERE r.rolname = CURRENT_USER
