-- activity: every backend, raw: names of users and databases are in roles and databases
-- columns: pid, leader_pid, datid, usesysid, application_name, client_addr, client_port, backend_type, state,
-- columns: wait_event_type, wait_event, backend_start, xact_start, query_start, state_change, backend_xid,
-- columns: backend_xmin, xmin_age, xid_age, query
SELECT a.pid,
       a.leader_pid,
       a.datid,
       a.usesysid,
       a.application_name,
       pg_catalog.host(a.client_addr) AS client_addr,
       a.client_port,
       a.backend_type,
       a.state,
       a.wait_event_type,
       a.wait_event,
       a.backend_start,
       a.xact_start,
       a.query_start,
       a.state_change,
       a.backend_xid::pg_catalog.text AS backend_xid,
       a.backend_xmin::pg_catalog.text AS backend_xmin,
       pg_catalog.age(a.backend_xmin) AS xmin_age,
       pg_catalog.age(a.backend_xid) AS xid_age,
       a.query
FROM pg_catalog.pg_stat_get_activity(NULL::pg_catalog.int4) a
WHERE a.pid <> pg_catalog.pg_backend_pid()
