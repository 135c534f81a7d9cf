import { readBlock } from '../../src/clickhouse/native-reader.js'

interface NativeRead {
  readonly rows: number
  readonly columns: readonly {
    readonly name: string
    readonly type: string
    /** Integers of 64 bits are bigint, texts are bytes. */
    readonly values: readonly (bigint | number | Buffer)[]
  }[]
}

/** All values of a block. @throws Error when the bytes are not exactly one block */
export function readNative(bytes: Uint8Array): NativeRead {
  const block = readBlock(bytes)
  if (block === null) throw new Error('no block')
  const valueOf = (name: string, row: number): bigint | number | Buffer => {
    const hex = block.hex(name, row)
    const value = hex === null ? block.number(name, row) : BigInt(`0x${hex}`)
    return value ?? block.utf8(name, row) ?? Buffer.alloc(0)
  }
  return {
    rows: block.rows,
    columns: Array.from(block.columns, ([name, { type }]) => ({
      name,
      type,
      values: Array.from({ length: block.rows }, (_, row) => valueOf(name, row)),
    })),
  }
}
