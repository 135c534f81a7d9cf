import { closeSync, openSync } from 'node:fs'
import * as ffi from 'ffi-rs'
import { test } from 'tap'
import { openOwnSockets } from '../../../../src/clickhouse/embedded/own-sockets.js'

void test('the files of the process are counted, however many they are', (t) => {
  const sockets = openOwnSockets(ffi)
  const before = sockets.countFiles()
  const files = Array.from({ length: 400 }, () => openSync('/dev/null', 'r'))
  t.equal(sockets.countFiles() - before, files.length)
  for (const file of files) closeSync(file)
  t.equal(sockets.countFiles(), before)
  t.end()
})
