-- Also for what is stored already, in the background.
ALTER TABLE events
    MATERIALIZE INDEX IF EXISTS by_search_words,
    MATERIALIZE INDEX IF EXISTS by_trace_id
SETTINGS mutations_sync = 0
