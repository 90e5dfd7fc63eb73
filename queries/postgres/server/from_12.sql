-- server: version, role, clock and the connection slots there are
-- columns: taken_at, version_num, version, in_recovery, started_at, own_pid, database, user, max_connections,
-- columns: superuser_reserved, reserved, provider_reserved, query_size, deadlock_timeout_ms
SELECT pg_catalog.clock_timestamp() AS taken_at,
       pg_catalog.current_setting('server_version_num')::pg_catalog.int4 AS version_num,
       pg_catalog.current_setting('server_version') AS version,
       pg_catalog.pg_is_in_recovery() AS in_recovery,
       pg_catalog.pg_postmaster_start_time() AS started_at,
       pg_catalog.pg_backend_pid() AS own_pid,
       pg_catalog.current_database()::pg_catalog.text AS database,
       CURRENT_USER::pg_catalog.text AS "user",
       pg_catalog.current_setting('max_connections')::pg_catalog.int4 AS max_connections,
       pg_catalog.current_setting('superuser_reserved_connections')::pg_catalog.int4 AS superuser_reserved,
       pg_catalog.current_setting('reserved_connections', true)::pg_catalog.int4 AS reserved,
       pg_catalog.current_setting('rds.rds_superuser_reserved_connections', true)::pg_catalog.int4 AS provider_reserved,
       -- a size that is no whole kB is shown as bytes (`5000B`), which pg_size_bytes() refuses before 16
       pg_catalog.pg_size_bytes(pg_catalog.regexp_replace(pg_catalog.current_setting('track_activity_query_size'), '^([0-9]+)B$', '\1')) AS query_size,
       (extract(epoch FROM pg_catalog.current_setting('deadlock_timeout')::pg_catalog.interval) * 1000)::pg_catalog.int8 AS deadlock_timeout_ms
