-- Sleeps under an id that no second query may have; see store/turn.ts.
-- Between steps the server looks whether the client is still there. The function needs no grant, system.numbers does.
-- params: steps UInt32
-- rows:   slept UInt8
SELECT sleepEachRow(0.2) AS slept
FROM numbers({steps:UInt32})
SETTINGS max_block_size = 1
