-- A page of events up to a number of bytes of text: the first event, and each event whose predecessors have fewer bytes together.
-- params: most_bytes UInt64
-- rows:   one event as in event_page; bytes are those of its text and of the texts before it
SELECT *
FROM (
    SELECT
        *, length(constant_text) + length(variables) + length(attribute_names) + length(attribute_values) + length(tags_text) AS own_bytes,
        sum(own_bytes) OVER (ORDER BY ts_ms /*order*/, id /*order*/ ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (/*page*/)
)
WHERE bytes - own_bytes < {most_bytes:UInt64}
ORDER BY ts_ms /*order*/, id /*order*/
