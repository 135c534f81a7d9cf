-- The columns of landing without its views: an insert says whether ClickHouse can read the rows, and stores
-- nothing. A migration that changes the columns of landing changes these too.
-- shard: home
CREATE TABLE IF NOT EXISTS landing_probe AS landing
ENGINE = Null
