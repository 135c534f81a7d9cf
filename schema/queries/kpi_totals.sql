-- Totals over all stored events.
-- params: none
-- rows:   events, occurrences, errors, routine (events below P1), routine_occurrences, unsure (routine
--         events with a confidence under a half); always one row
SELECT
    sum(template_totals.events) AS events,
    sum(debug + info + warning + template_totals.error + critical) AS occurrences,
    sum(template_totals.error + critical) AS errors,
    sum(template_totals.routine) AS routine,
    sum(p2 + p3 + p4) AS routine_occurrences,
    sum(template_totals.unsure) AS unsure
FROM template_totals
