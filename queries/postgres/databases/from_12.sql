-- databases: encoding, connection limit and backends of each database
SELECT d.oid,
       d.datname::pg_catalog.text AS name,
       pg_catalog.pg_encoding_to_char(d.encoding)::pg_catalog.text AS encoding,
       d.datconnlimit AS connection_limit,
       pg_catalog.pg_stat_get_db_numbackends(d.oid) AS backends
FROM pg_catalog.pg_database d
ORDER BY d.oid
