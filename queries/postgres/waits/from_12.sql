-- waits: what active sessions wait for, most common first
-- columns: wait_event_type, wait_event, sessions
SELECT coalesce(a.wait_event_type, 'running') AS wait_event_type,
       coalesce(a.wait_event, '(on the processor)') AS wait_event,
       pg_catalog.count(*) AS sessions
FROM pg_catalog.pg_stat_get_activity(NULL::pg_catalog.int4) a
WHERE a.state = 'active' AND a.pid <> pg_catalog.pg_backend_pid()
GROUP BY 1, 2
ORDER BY 3 DESC, 1, 2
