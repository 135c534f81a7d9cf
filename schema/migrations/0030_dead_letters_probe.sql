-- The columns of dead_letters; an insert says whether ClickHouse can read the rows, and stores nothing.
-- shard: home
CREATE TABLE IF NOT EXISTS dead_letters_probe AS dead_letters
ENGINE = Null
