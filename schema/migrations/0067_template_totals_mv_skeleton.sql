-- Made again below with the skeleton; see 0063.
DROP VIEW IF EXISTS template_totals_mv
