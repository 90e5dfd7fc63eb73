-- overrides: settings by ALTER ROLE and ALTER DATABASE
-- columns: datid, roleid, config
SELECT o.setdatabase AS datid,
       o.setrole AS roleid,
       pg_catalog.unnest(o.setconfig) AS config
FROM pg_catalog.pg_db_role_setting o
ORDER BY 1, 2, 3
