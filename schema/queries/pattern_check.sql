-- Fails for a pattern that RE2 refuses.
-- params: pattern String
-- rows:   matches UInt8
SELECT match('', {pattern:String}) AS matches
