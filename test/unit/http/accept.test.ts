import t from 'tap'

import { prefers } from '../../../src/http/accept.js'

t.test('a media type is preferred when it is named with the greatest quality', (t) => {
  const isLines = (accept: string, wanted: boolean): void =>
    void t.equal(prefers(accept, 'application/x-ndjson', 'application/json'), wanted, accept)

  isLines('application/x-ndjson', true)
  isLines('Application/X-NDJSON ; charset=utf-8', true)
  isLines('application/x-ndjson, application/json', true)
  isLines('application/json, application/x-ndjson', true)
  isLines('application/x-ndjson, */*', true)
  isLines('application/json;q=0.5, application/x-ndjson;q=0.9', true)
  isLines('text/html, application/x-ndjson ; q=0.1', true)
  isLines('application/json;q=0, application/*, application/x-ndjson;q=0.1', true)

  isLines('application/x-ndjson;q=0.5, application/json', false)
  isLines('application/x-ndjson; Q=0.5, application/*', false)
  isLines('application/x-ndjson;q=0.5, */*;q=0.8', false)
  isLines('application/x-ndjson;q=0', false)
  isLines('application/x-ndjson;q=x', false)
  isLines('application/x-ndjson-2, text/application/x-ndjson', false)
  isLines('application/*', false)
  isLines('*/*', false)
  isLines('', false)
  t.end()
})
