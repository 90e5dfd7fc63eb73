-- settings: the settings that incidents turn on, as they are without this session's local timeouts
-- $1 text[]: the names; NULL: all
-- columns: name, value, unit, boot_value, source, pending_restart
SELECT s.name,
       s.reset_val AS value,
       s.unit,
       s.boot_val AS boot_value,
       s.source,
       s.pending_restart
FROM pg_catalog.pg_settings s
WHERE $1::pg_catalog.text[] IS NULL OR s.name = ANY ($1::pg_catalog.text[])
ORDER BY s.name
