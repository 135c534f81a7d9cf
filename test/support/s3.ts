import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from '@20minutes/s3rver'
import { freePort } from './ports.js'

/** The keys that the server knows. */
export const S3_KEY = 'S3RVER'

export interface TestS3 {
  /** The settings of a service that uses it. */
  readonly env: Readonly<Record<string, string>>
  /** Where it keeps objects. */
  readonly dir: string
  down(): Promise<void>
  up(): Promise<void>
}

/** The part of tap's tests that ends something after the test. */
interface Owner {
  teardown(end: () => Promise<unknown> | void): void
}

/** Starts an S3 server with an empty bucket. */
export async function startS3(owner: Owner): Promise<TestS3> {
  const dir = mkdtempSync(join(tmpdir(), 's3-test-'))
  const port = await freePort()
  const make = (): S3rver =>
    new S3rver({
      port,
      address: '127.0.0.1',
      silent: true,
      directory: dir,
      configureBuckets: [{ name: 'logs' }],
    })
  let server: S3rver | null = null
  const down = async (): Promise<void> => {
    await server?.close()
    server = null
  }
  const up = async (): Promise<void> => {
    server = make()
    await server.run()
  }
  await up()
  owner.teardown(async () => {
    await down()
    rmSync(dir, { recursive: true, force: true })
  })
  const env = {
    S3_URL: `http://127.0.0.1:${port}/logs/engine`,
    S3_ACCESS_KEY_ID: S3_KEY,
    S3_SECRET_ACCESS_KEY: S3_KEY,
  }
  return { env, dir, down, up }
}
