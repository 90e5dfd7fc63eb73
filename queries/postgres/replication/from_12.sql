-- replication: walsenders, how far their standby has replayed, and the xmin that it holds here
-- columns: pid, user, application_name, client_addr, state, sync_state, sent_lsn, replay_lsn, replay_lag_ms,
-- columns: backend_xmin
SELECT r.pid, r.usename::pg_catalog.text AS "user", r.application_name,
       pg_catalog.host(r.client_addr) AS client_addr, r.state, r.sync_state,
       r.sent_lsn::pg_catalog.text AS sent_lsn, r.replay_lsn::pg_catalog.text AS replay_lsn,
       (extract(epoch FROM r.replay_lag) * 1000)::pg_catalog.int8 AS replay_lag_ms,
       r.backend_xmin::pg_catalog.text AS backend_xmin
FROM pg_catalog.pg_stat_replication r
ORDER BY r.application_name, r.pid
