-- progress: how far VACUUM and CREATE INDEX have come, in heap blocks
-- columns: command, pid, database, relation, phase, blocks_done, blocks_total
SELECT 'vacuum' AS command, v.pid, v.datname::pg_catalog.text AS database, v.relid AS relation, v.phase,
       v.heap_blks_scanned AS blocks_done, v.heap_blks_total AS blocks_total
FROM pg_catalog.pg_stat_progress_vacuum v
UNION ALL
SELECT c.command, c.pid, c.datname::pg_catalog.text, c.relid, c.phase, c.blocks_done, c.blocks_total
FROM pg_catalog.pg_stat_progress_create_index c
ORDER BY 2
