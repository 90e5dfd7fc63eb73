-- relations: names of relations of this database, by oid
-- $1 oid[]: the relations; NULL: those that are locked now
-- columns: oid, schema, name
SELECT c.oid,
       n.nspname::pg_catalog.text AS schema,
       c.relname::pg_catalog.text AS name
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY (coalesce($1::pg_catalog.oid[],
                            ARRAY(SELECT l.relation FROM pg_catalog.pg_lock_status() l
                                   WHERE l.relation IS NOT NULL)))
ORDER BY c.oid
