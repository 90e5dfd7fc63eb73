-- slots: replication slots and the xmin they hold
-- columns: name, slot_type, datid, active, active_pid, xmin, xmin_age, catalog_xmin, catalog_xmin_age
SELECT s.slot_name::pg_catalog.text AS name,
       s.slot_type,
       s.datoid AS datid,
       s.active,
       s.active_pid,
       s.xmin::pg_catalog.text AS xmin,
       pg_catalog.age(s.xmin) AS xmin_age,
       s.catalog_xmin::pg_catalog.text AS catalog_xmin,
       pg_catalog.age(s.catalog_xmin) AS catalog_xmin_age
FROM pg_catalog.pg_get_replication_slots() s
ORDER BY s.slot_name
