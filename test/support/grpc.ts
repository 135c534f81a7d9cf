import { credentials, makeClientConstructor, Metadata, type ServiceError } from '@grpc/grpc-js'

export interface GrpcAnswer {
  /** 0 for success. */
  readonly code: number
  readonly message: string
  readonly response: Buffer | null
  readonly trailers: Metadata | null
}

const EXPORT = '/opentelemetry.proto.collector.logs.v1.LogsService/Export'

/** Sends one message as it is, by the client of gRPC. @param path of the method */
export function callGrpc(
  address: string,
  message: Uint8Array,
  { headers = {}, path = EXPORT }: { headers?: Record<string, string>; path?: string } = {},
): Promise<GrpcAnswer> {
  const asIs = (bytes: Buffer): Buffer => bytes
  const definition = {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  }
  const client = new (makeClientConstructor({ export: definition }, 'Any'))(
    address,
    credentials.createInsecure(),
  )
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
  return new Promise<GrpcAnswer>((resolve) => {
    client.makeUnaryRequest(
      path,
      asIs,
      asIs,
      Buffer.from(message),
      metadata,
      { deadline: Date.now() + 20_000 },
      (error: ServiceError | null, response?: Buffer) =>
        resolve({
          code: error?.code ?? 0,
          message: error?.details ?? '',
          response: response ?? null,
          trailers: error?.metadata ?? null,
        }),
    )
  }).finally(() => client.close())
}
