import { readContentCoding, type ContentCoding } from '../../../http/decompress.js'
import { HeaderBag } from '../../../http/request.js'
import { AppError } from '../../../model/errors.js'
import { INGEST_BYTES, type ProtocolFormat } from '../../block.js'
import { rpcCodeOf, rpcStatus } from './response.js'

/** The methods that are served, by path. */
export const GRPC_METHODS: ReadonlyMap<string, ProtocolFormat> = new Map([
  ['/opentelemetry.proto.collector.logs.v1.LogsService/Export', 'otlp/logs'],
  ['/opentelemetry.proto.collector.trace.v1.TraceService/Export', 'otlp/traces'],
  ['/opentelemetry.proto.collector.metrics.v1.MetricsService/Export', 'otlp/metrics'],
])

/** A message is preceded by a byte that says whether it is compressed, and by four bytes of length. */
const HEAD_BYTES = 5
/** The most bytes of a request, which has one message. */
export const GRPC_BYTES = HEAD_BYTES + INGEST_BYTES

export interface GrpcMessage {
  readonly bytes: Buffer
  readonly coding: ContentCoding
}

/**
 * Reads the only message of a request.
 *
 * @param encoding the header `grpc-encoding`
 * @throws AppError `bad_request` when there is not exactly one, `unsupported_media_type` for another encoding
 */
export function readGrpcMessage(body: Buffer, encoding: string): GrpcMessage {
  const isWhole = body.length >= HEAD_BYTES && body.readUInt32BE(1) === body.length - HEAD_BYTES
  if (!isWhole) throw new AppError('bad_request', 'the request must be one whole message')
  const bytes = body.subarray(HEAD_BYTES)
  if (body[0] === 0) return { bytes, coding: 'identity' }
  const headers = new HeaderBag()
  headers.add('content-encoding', encoding)
  return { bytes, coding: readContentCoding(headers) }
}

/** Writes a message that is not compressed. */
export function writeGrpcMessage(bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([head, bytes])
}

/** Writes an error as the headers that end a request. */
export function grpcError(error: AppError): Readonly<Record<string, string>> {
  const isOfEncoding = error.code === 'unsupported_media_type'
  const code = isOfEncoding ? UNIMPLEMENTED : rpcCodeOf(error)
  return {
    'grpc-status': String(code),
    'grpc-message': percentEncoded(error.message),
    'grpc-status-details-bin': Buffer.from(rpcStatus(error, code)).toString('base64'),
    ...(isOfEncoding ? { 'grpc-accept-encoding': 'identity,gzip,deflate,br,zstd,snappy' } : {}),
  }
}

const UNIMPLEMENTED = 12

/** Printable ASCII characters other than the percent sign need no encoding. */
const percentEncoded = (text: string): string =>
  encodeURIComponent(Buffer.from(text).toString()).replaceAll('%20', ' ')
