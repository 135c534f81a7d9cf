-- A new database has its views made again while landing is closed (store/landing-gate.ts), and the probe, made with the
-- columns of landing, would stay closed.
ALTER TABLE landing_probe DROP COLUMN IF EXISTS closed
