import { bench, do_not_optimize, run } from 'mitata'
import { UTC } from '../../src/ingest/formats/zone.js'
import { parseTimestamp } from '../../src/ingest/formats/timestamp.js'

const NOW = Date.UTC(2026, 10, 21)
const FORMS = {
  'iso utc': '2026-11-21T09:28:19.123Z',
  'iso offset': '2026-11-21T09:28:19.123456+01:00',
  'epoch digits': '1795253350042',
  'log4j comma': '2026-11-21 09:28:19,000',
  nginx: '21/Nov/2026:09:28:19 +0000',
  syslog: 'Nov 21 09:28:19',
}

for (const [name, text] of Object.entries(FORMS)) {
  bench(name, () => do_not_optimize(parseTimestamp(text, { nowMs: NOW, toUtc: UTC })))
}
bench('epoch number', () =>
  do_not_optimize(parseTimestamp(1_795_253_350_042, { nowMs: NOW, toUtc: UTC })))
bench('Date.parse, iso utc', () => do_not_optimize(Date.parse(FORMS['iso utc'])))

await run()
