import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'

/** The path of `deploy/`, from `build/` too. */
export const DEPLOY = fileURLToPath(new URL('../../../deploy/', import.meta.url))

export const readDeploy = (path: string): string => readFileSync(join(DEPLOY, path), 'utf8')

/** The files of `deploy/` with this suffix, as paths relative to it. */
export const listDeploy = (...endings: readonly string[]): readonly string[] =>
  readdirSync(DEPLOY, { recursive: true, encoding: 'utf8' })
    .filter((path) => endings.some((ending) => path.endsWith(ending)))
    .sort()

/**
 * Parses the documents of a YAML file.
 *
 * @throws Error on any warning of the YAML library, such as duplicate keys
 */
export function parseYaml(path: string): readonly unknown[] {
  const documents = parseAllDocuments(readDeploy(path), { strict: true, merge: true })
  if (!Array.isArray(documents)) return []
  return documents.map((document) => {
    const [fault] = [...document.errors, ...document.warnings]
    if (fault !== undefined) throw new Error(`${path}: ${fault.message}`)
    const value: unknown = document.toJS()
    return value
  })
}

/** Parses lines of NAME=value; the value is '' in examples of secrets. */
export const parseEnvFile = (path: string): ReadonlyMap<string, string> =>
  new Map(
    readDeploy(path)
      .split('\n')
      .map((line) => /^#?([A-Z_]+)=(.*)$/.exec(line))
      .filter((match) => match !== null)
      .map(([, name = '', value = '']) => [name, value]),
  )
