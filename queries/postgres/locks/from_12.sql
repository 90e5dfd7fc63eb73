-- locks: every heavyweight lock, granted and awaited; a NULL pid is a prepared transaction's
-- columns: locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid,
-- columns: virtualtransaction, pid, mode, granted, waitstart
SELECT l.locktype,
       l.database,
       l.relation,
       l.page,
       l.tuple,
       l.virtualxid,
       l.transactionid::pg_catalog.text AS transactionid,
       l.classid,
       l.objid,
       l.objsubid,
       l.virtualtransaction,
       l.pid,
       l.mode,
       l.granted,
       NULL::pg_catalog.timestamptz AS waitstart
FROM pg_catalog.pg_lock_status() l
WHERE l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
