import { createHash } from 'node:crypto'
import { open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { Type, type Static } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

import { hashFile, listFiles, syncTree, type HashedFile } from './file-tree.js'

/** The version of the layout of a backup's directory. */
const FORMAT = 1
export const MANIFEST = 'manifest.json'

const Plain = Type.String({ pattern: '^[a-zA-Z_][a-zA-Z0-9_-]{0,99}$' })
const ManifestSchema = Type.Object({
  format: Type.Integer(),
  program: Type.String(),
  version: Type.String(),
  /** The version of the schema. */
  schema: Type.Integer({ minimum: 1 }),
  database: Plain,
  taken_at: Type.String(),
  /** Where the tables of ClickHouse are; `file` is a folder of this directory. */
  clickhouse: Type.Union([
    Type.Object({ kind: Type.Literal('file'), name: Plain }),
    Type.Object({ kind: Type.Literal('disk'), disk: Plain, name: Plain }),
  ]),
  totals: Type.Record(Type.String(), Type.Integer()),
  files: Type.Array(
    Type.Object({ path: Type.String(), bytes: Type.Integer(), sha256: Type.String() }),
  ),
})

/** The content of a backup. It is written last, so that an unfinished backup has no manifest. */
export type Manifest = Static<typeof ManifestSchema>

export type ManifestHead = Omit<Manifest, 'format' | 'files'>

/** Adds the checksum of every file of the directory, and flushes everything to the disk. */
export async function writeManifest(dir: string, head: ManifestHead): Promise<Manifest> {
  const files: HashedFile[] = []
  for (const path of await listFiles(dir)) files.push(await hashFile(dir, path))
  const manifest = { format: FORMAT, ...head, files }
  await syncTree(dir)
  const text = JSON.stringify(manifest, null, 1)
  const sealed = `${text}\n${seal(text)}\n`
  const temporary = join(dir, `${MANIFEST}.new`)
  const file = await open(temporary, 'w', 0o600)
  try {
    await file.writeFile(sealed)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, join(dir, MANIFEST))
  await syncTree(dir)
  return manifest
}

/** @throws Error when the directory holds no complete backup that this program can read */
export async function readManifest(dir: string): Promise<Manifest> {
  const sealed = await readFile(join(dir, MANIFEST), 'utf8').catch(() => {
    throw new Error(`${dir} holds no complete backup: it has no ${MANIFEST}`)
  })
  const [, text = '', sum = ''] = /^([\s\S]*)\n([0-9a-f]{64})\n$/.exec(sealed) ?? []
  if (seal(text) !== sum) throw new Error(`${MANIFEST} of ${dir} was changed or truncated`)
  const manifest: unknown = JSON.parse(text)
  const format = typeof manifest === 'object' && manifest !== null && 'format' in manifest
  if (format && Number(manifest.format) > FORMAT)
    throw new Error(`${dir} was made by a newer program; restore it with that one`)
  if (Value.Check(ManifestSchema, manifest)) return manifest
  throw new Error(`${MANIFEST} of ${dir} is not the manifest of a backup`)
}

/** @throws Error when a path leads out of the backup */
export function checkPath(path: string): string {
  if (path.startsWith('/') || path.split('/').includes('..'))
    throw new Error(`${MANIFEST} names ${path}, which is not in the backup`)
  return path
}

/** @throws Error naming the first file that is missing or differs */
export async function checkFiles(dir: string, { files }: Manifest): Promise<void> {
  for (const { path, bytes, sha256 } of files) {
    const found = await hashFile(dir, checkPath(path)).catch(() => {
      throw new Error(`${path} of the backup is missing`)
    })
    if (found.bytes !== bytes || found.sha256 !== sha256)
      throw new Error(`${path} of the backup is damaged`)
  }
}

const seal = (text: string): string => createHash('sha256').update(text).digest('hex')
