import { gzipSync } from 'node:zlib'
import { PbfReader } from 'pbf'
import { test } from 'tap'

import {
  grpcError,
  readGrpcMessage,
  writeGrpcMessage,
} from '../../../../../src/ingest/protocols/otlp/grpc.js'
import { overloaded } from '../../../../../src/ingest/refusals.js'
import { AppError, type ErrorCode, ERRORS } from '../../../../../src/model/errors.js'

void test('a request is exactly one message, compressed as its header says', async (t) => {
  const message = writeGrpcMessage(Buffer.from('abc'))
  t.same(readGrpcMessage(message, ''), { bytes: Buffer.from('abc'), coding: 'identity' })
  const packed = writeGrpcMessage(gzipSync('abc'))
  packed[0] = 1
  t.equal(readGrpcMessage(packed, 'gzip').coding, 'gzip')
  t.throws(() => readGrpcMessage(packed, 'lzma'), { code: 'unsupported_media_type' })
  for (const body of ['', 'abc', Buffer.concat([message, message]), message.subarray(0, 7)])
    t.throws(() => readGrpcMessage(Buffer.from(body), ''), { code: 'bad_request' })
})

void test('an error says by its status whether to come again, and when', async (t) => {
  const busy = grpcError(overloaded())
  t.match(busy, { 'grpc-status': '14', 'grpc-message': /^[\x20-\x7e]+$/ })
  const status = new PbfReader(Buffer.from(busy['grpc-status-details-bin'] ?? '', 'base64'))
  const fields = status.readFields<Record<number, unknown>>((no, to, pbf) => {
    to[no] = no === 1 ? pbf.readVarint() : Buffer.from(pbf.readBytes()).toString('latin1')
  }, {})
  t.equal(fields[1], 14)
  const oneSecond = Buffer.from([0x12, 4, 0x0a, 2, 8, 1]).toString('latin1')
  t.ok(String(fields[3]).endsWith(`google.rpc.RetryInfo${oneSecond}`))
  const wrong = grpcError(new AppError('unauthorized', 'no key, 100 % é'))
  t.match(wrong, { 'grpc-status': '16', 'grpc-message': 'no key%2C 100 %25 %C3%A9' })
})

// Clients of Java throw an exception of their own where the two differ.
void test('the details of every error have its status', async (t) => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const headers = grpcError(new AppError(code, 'text'))
    const details = Buffer.from(headers['grpc-status-details-bin'] ?? '', 'base64')
    t.same([...details.subarray(0, 2)], [8, Number(headers['grpc-status'])], code)
  }
  const unread = grpcError(new AppError('unsupported_media_type', 'text'))
  t.match(unread, { 'grpc-status': '12', 'grpc-accept-encoding': /gzip/ })
})
