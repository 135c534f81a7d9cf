-- Whether the audit trail has an entry with this hash in the chain of one instance.
-- params: writer String, hash String
-- rows:   entries
SELECT count() AS entries
FROM audit
WHERE JSONExtractString(detail, 'audit_link', 'writer') = {writer:String}
    AND JSONExtractString(detail, 'audit_link', 'hash') = {hash:String}
