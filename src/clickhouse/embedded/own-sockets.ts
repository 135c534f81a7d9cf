import { readdirSync, statSync } from 'node:fs'
import type * as Ffi from 'ffi-rs'

const AF_INET = 2
const SHUT_RDWR = 2
const ADDRESS_BYTES = 128
/** The address begins with the family, after a byte with its length on macOS. */
const FAMILY_AT = process.platform === 'darwin' ? 1 : 0
const PORT_AT = 2

export interface Listener {
  readonly file: number
  readonly port: number
}

/** The TCP sockets of this process as the kernel lists them. Needs the library `libc` to be open. */
export interface OwnSockets {
  /** The first listener on another port than this one; null if there is none. */
  findListener(otherThan: number): Listener | null
  isListening(listener: Listener): boolean
  countFiles(): number
  /** The accepted connections of a listener, each with the port of its client. */
  connectionsOf(listener: Listener): readonly { readonly file: number; readonly peer: number }[]
  /** Ends a connection; its reader sees the end and closes it. */
  shutDown(file: number): void
}

export function openOwnSockets(ffi: typeof Ffi): OwnSockets {
  const { I32, U8Array } = ffi.DataType
  const load = { library: 'libc', retType: I32 } as const
  const portBy = (funcName: 'getsockname' | 'getpeername', file: number): number | null => {
    const address = Buffer.alloc(ADDRESS_BYTES)
    const length = Buffer.alloc(4)
    length.writeUInt32LE(ADDRESS_BYTES)
    const result = ffi.load({
      ...load,
      funcName,
      paramsType: [I32, U8Array, U8Array],
      paramsValue: [file, address, length],
    })
    return result === 0 && address[FAMILY_AT] === AF_INET ? address.readUInt16BE(PORT_AT) : null
  }
  // Both Linux and macOS list a process's own open files here.
  const files = (): number[] => readdirSync('/dev/fd').map(Number)
  const isListening = ({ file, port }: Listener): boolean =>
    portBy('getsockname', file) === port && portBy('getpeername', file) === null
  return {
    isListening,
    findListener: (otherThan) => {
      for (const file of files()) {
        const port = portBy('getsockname', file)
        if (port === null || port === 0 || port === otherThan) continue
        if (isListening({ file, port })) return { file, port }
      }
      return null
    },
    countFiles: () => countedByKernel() || files().length,
    connectionsOf: ({ port }) =>
      files().flatMap((file) => {
        const peer = portBy('getsockname', file) === port ? portBy('getpeername', file) : null
        return peer === null ? [] : [{ file, peer }]
      }),
    shutDown: (file) => {
      ffi.load({
        ...load,
        funcName: 'shutdown',
        paramsType: [I32, I32],
        paramsValue: [file, SHUT_RDWR],
      })
    },
  }
}

/** A listing costs most of what the engine's process does at rest. Linux before 6.2 counts none. */
const countedByKernel = (): number =>
  process.platform === 'linux' ? statSync('/proc/self/fd').size : 0
