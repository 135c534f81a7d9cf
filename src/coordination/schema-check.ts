import { Ajv, type ValidateFunction } from 'ajv'
import type { TSchema } from '@sinclair/typebox'

/**
 * Checks values against a schema as the API checks what clients send. TypeBox's own check counts an emoji as two characters, so
 * that what the API takes would not fit. It is compiled on its first use.
 *
 * @returns where and why a value does not fit; null when it does
 */
export function createSchemaCheck(schema: TSchema): (value: unknown) => string | null {
  let check: ValidateFunction | null = null
  return (value) => {
    check ??= new Ajv({ strict: false, validateSchema: false, meta: false }).compile(schema)
    if (check(value)) return null
    const [first] = check.errors ?? []
    return `${first?.instancePath ?? ''} ${first?.message ?? ''}`.trim()
  }
}
