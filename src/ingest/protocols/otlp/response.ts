import { PbfWriter } from 'pbf'

import { ERRORS, type AppError } from '../../../model/errors.js'
import type { BodyResult } from '../../block.js'

/** The error of the first rejected item. */
export const messageOf = ({ rejected, errors }: BodyResult): string =>
  `${rejected} rejected, the first: ${errors[0]?.message ?? ''}`

/** Writes the response to a request of any signal. Without rejected items it is empty. */
export function exportResponse(result: BodyResult): Uint8Array {
  const pbf = new PbfWriter()
  if (result.rejected > 0) pbf.writeMessage(1, writePartialSuccess, result)
  return pbf.finish()
}

function writePartialSuccess(result: BodyResult, pbf: PbfWriter): void {
  pbf.writeVarintField(1, result.rejected)
  pbf.writeStringField(2, messageOf(result))
}

/** Codes of google.rpc.Status, by the status of HTTP. */
const RPC_CODES: Readonly<Record<number, number>> = {
  400: 3,
  401: 16,
  403: 7,
  404: 12,
  408: 4,
  413: 3,
  415: 3,
  422: 3,
  500: 13,
}

/** Errors that may be retried are UNAVAILABLE. */
export const rpcCodeOf = (error: AppError): number =>
  ERRORS[error.code].retry ? 14 : (RPC_CODES[error.status] ?? 2)

/** Writes a google.rpc.Status. For an error that may be retried it says when. */
export function rpcStatus(error: AppError, code = rpcCodeOf(error)): Uint8Array {
  const pbf = new PbfWriter()
  pbf.writeVarintField(1, code)
  pbf.writeStringField(2, error.message)
  if (ERRORS[error.code].retry) pbf.writeMessage(3, writeRetryInfo, error.retryAfterS ?? 1)
  return pbf.finish()
}

/** Writes google.protobuf.Any with a RetryInfo, whose delay is a Duration. */
function writeRetryInfo(seconds: number, pbf: PbfWriter): void {
  pbf.writeStringField(1, 'type.googleapis.com/google.rpc.RetryInfo')
  const duration = (s: number, to: PbfWriter): void => to.writeVarintField(1, s)
  const info = (s: number, to: PbfWriter): void => to.writeMessage(1, duration, s)
  pbf.writeMessage(2, info, seconds)
}
