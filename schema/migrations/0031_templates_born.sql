-- When the first message of a template came, microseconds since 1970: of templates that are merged the oldest
-- stays, whichever instance merges them. Rows from before say when they were last written.
ALTER TABLE templates ADD COLUMN IF NOT EXISTS born UInt64 DEFAULT version * 1000 AFTER version
