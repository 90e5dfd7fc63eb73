-- blocking: who blocks each waiter, by the server's own word; 0 is a prepared transaction
-- $1 int4[]: the pids to ask for; NULL: up to 200 that wait
-- columns: pid, blockers
SELECT w.pid,
       pg_catalog.pg_blocking_pids(w.pid) AS blockers
FROM (SELECT pg_catalog.unnest($1::pg_catalog.int4[]) AS pid
      UNION
      (SELECT l.pid FROM pg_catalog.pg_lock_status() l
        WHERE $1::pg_catalog.int4[] IS NULL AND NOT l.granted AND l.pid IS NOT NULL
        LIMIT 200)) w
