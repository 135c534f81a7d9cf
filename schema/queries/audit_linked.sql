-- Whether the chain of one instance in the audit trail has an entry with this hash.
-- params: writer String, hash String
-- rows:   entries
SELECT count() AS entries
FROM audit
WHERE JSONExtractString(detail, 'audit_link', 'writer') = {writer:String}
    AND JSONExtractString(detail, 'audit_link', 'hash') = {hash:String}
