-- prepared: prepared transactions, raw: names of owners and databases are in roles and databases
-- columns: xid, xid_age, gid, prepared, ownerid, dbid
SELECT p.transaction::pg_catalog.text AS xid,
       pg_catalog.age(p.transaction) AS xid_age,
       p.gid,
       p.prepared,
       p.ownerid,
       p.dbid
FROM pg_catalog.pg_prepared_xact() p
ORDER BY p.prepared
