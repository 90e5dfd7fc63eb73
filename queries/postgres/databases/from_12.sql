-- databases: encoding, connection limit, backends and deadlocks of each database
-- columns: oid, name, encoding, connection_limit, backends, deadlocks, stats_reset
SELECT d.oid,
       d.datname::pg_catalog.text AS name,
       pg_catalog.pg_encoding_to_char(d.encoding)::pg_catalog.text AS encoding,
       d.datconnlimit AS connection_limit,
       pg_catalog.pg_stat_get_db_numbackends(d.oid) AS backends,
       pg_catalog.pg_stat_get_db_deadlocks(d.oid) AS deadlocks,
       pg_catalog.pg_stat_get_db_stat_reset_time(d.oid) AS stats_reset
FROM pg_catalog.pg_database d
ORDER BY d.oid
