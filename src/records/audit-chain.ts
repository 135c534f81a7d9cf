import { createHash } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { DAY_MS } from '../model/time.js'
import type { AuditRecord } from './audit-record.js'

/*
 * The hash chain of the audit trail. Each instance numbers its entries, and each entry has the hash
 * of the one before it, so that none can be changed, removed or inserted without a trace. Each
 * instance has a chain of its own, because instances write at the same time. Whoever can write the
 * table could recompute a chain, so each instance stores the end of its chain in a file of its data
 * directory as well; the chain in the table must contain it.
 */

/** The place of an entry in the chain of the instance that wrote it. */
export interface Link {
  readonly writer: string
  /** From 1, without gaps. */
  readonly number: number
  /** The hash of the entry before it; '' for the first. */
  readonly previous: string
  /** The time of the entry before it, which shows whether that has left the table; 0 for the first. */
  readonly previousAtMs: number
  /** The hash of these fields and of the entry. */
  readonly hash: string
}

export interface StoredRecord extends AuditRecord {
  /** Null for entries of versions without chains. */
  readonly link: Link | null
}

/** The last entry of a chain. */
export interface Head {
  readonly number: number
  readonly hash: string
  readonly atMs: number
  readonly seq: number
}

export const NO_HEAD: Head = { number: 0, hash: '', atMs: 0, seq: 0 }

export interface AuditChain {
  /** Appends entries to the chain after the last stored one. Until `stored` is called, the same positions are used again. */
  link(records: readonly AuditRecord[]): readonly StoredRecord[]
  /** Records that the last linked entries are stored. */
  stored(): void
  readonly writer: string
  readonly head: Head
}

/** @param keep stores the end of the chain outside the table */
export function createChain(writer: string, from: Head, keep: (head: Head) => void): AuditChain {
  let [head, next] = [from, from]
  return {
    writer,
    get head() {
      return head
    },
    link: (records) => {
      next = head
      return records.map((record) => {
        const { number, hash: previous, atMs: previousAtMs } = next
        const place = { writer, number: number + 1, previous, previousAtMs }
        const link = { ...place, hash: hashOf(record, place) }
        next = { number: link.number, hash: link.hash, atMs: record.atMs, seq: record.seq }
        return { ...record, link }
      })
    },
    stored: () => {
      head = next
      keep(head)
    },
  }
}

function hashOf(record: AuditRecord, link: Omit<Link, 'hash'>): string {
  const { writer, number, previous, previousAtMs } = link
  const { seq, id, atMs, actorId, action, target, outcome, ip, detail } = record
  const fields = [writer, number, previous, previousAtMs]
  const entry = [seq, id, atMs, actorId, action, target, outcome, ip, detail]
  return createHash('sha256')
    .update(JSON.stringify([fields, entry]))
    .digest('hex')
}

/** The file in which an instance keeps the end of its chain. */
export function headFile(path: string): { read(): Head; keep(head: Head): void } {
  return {
    read: () => {
      try {
        return JSON.parse(readFileSync(path, 'utf8')) as Head // `keep` writes it.
      } catch {
        return NO_HEAD
      }
    },
    keep: (head) => {
      const made = `${path}.new`
      writeFileSync(made, JSON.stringify(head), { mode: 0o600 })
      renameSync(made, path)
    },
  }
}

/**
 * Determines the end of a chain after a start. The table may be ahead of the file when the process
 * ended between an insert and the update of the file. But the entry in the file must be in the
 * table, unless it was removed by its age.
 *
 * @param kept the end in the file; `NO_HEAD` for none
 * @param stored the end in the table; `NO_HEAD` for none
 * @param isKeptStored whether the table has the entry of the file
 */
export function endAfterStart(
  { kept, stored, isKeptStored }: { kept: Head; stored: Head; isKeptStored: boolean },
  nowMs: number,
): { readonly head: Head; readonly isChanged: boolean } {
  const isOwed = kept.number > 0 && nowMs - kept.atMs < KEPT_MS
  if (isOwed && !isKeptStored) return { head: kept, isChanged: true }
  return { head: stored.number < kept.number ? kept : stored, isChanged: false }
}

export interface AuditReport {
  readonly entries: number
  /** The entries in no chain: of versions without chains, or inserted before the first chain. */
  readonly unchained: number
  /** The chains, each with its first and last entry that is stored. */
  readonly chains: readonly {
    readonly writer: string
    readonly from: number
    readonly to: number
    readonly hash: string
  }[]
  /** The inconsistencies, at most 100; empty for an unchanged trail. */
  readonly problems: readonly string[]
}

/** Days after which ClickHouse removes entries, less one for clocks. */
const KEPT_MS = 399 * DAY_MS
const MAX_PROBLEMS = 100

interface Seen {
  readonly from: number
  last: Link
}

/** An end of a chain that is known from outside the table. */
export interface KnownHead extends Head {
  readonly writer: string
}

/**
 * Verifies the whole trail in one pass.
 *
 * @param pages the entries in the order of `seq`
 */
export async function verifyTrail(
  pages: AsyncIterable<readonly StoredRecord[]>,
  known: readonly KnownHead[],
  nowMs: number,
): Promise<AuditReport> {
  const chains = new Map<string, Seen>()
  const problems: string[] = []
  const missing = new Set(known.filter(({ number }) => number > 0))
  let [entries, unchained] = [0, 0]
  for await (const page of pages) {
    entries += page.length
    unchained += page.filter(({ link }) => link === null).length
    for (const record of page) problems.push(...problemsOf(record, chains, nowMs))
    for (const head of missing)
      if (page.some(({ link }) => link?.hash === head.hash)) missing.delete(head)
    problems.splice(MAX_PROBLEMS)
  }
  for (const { writer, number, atMs } of missing)
    if (nowMs - atMs < KEPT_MS)
      problems.push(
        `${writer}: entry ${number}, the last that this instance wrote, is missing or was changed`,
      )
  return {
    entries,
    unchained,
    problems: problems.slice(0, MAX_PROBLEMS),
    chains: Array.from(chains, ([writer, { from, last }]) => {
      return { writer, from, to: last.number, hash: last.hash }
    }),
  }
}

/** Checks an entry against the one before it in its chain, and records it as the chain's last. */
function problemsOf(record: StoredRecord, chains: Map<string, Seen>, nowMs: number): string[] {
  const { link, id } = record
  if (link === null)
    return chains.size === 0 ? [] : [`entry ${id} of ${timeOf(record)} is in no chain`]
  const before = chains.get(link.writer)
  const gap = gapBefore(link, before?.last ?? null, nowMs)
  if (before === undefined) chains.set(link.writer, { from: link.number, last: link })
  else before.last = link
  const wrong = [hashOf(record, link) === link.hash ? null : 'was changed', gap]
  const what = `${link.writer}: entry ${link.number} of ${timeOf(record)}`
  return wrong.filter((problem) => problem !== null).map((problem) => `${what} ${problem}`)
}

/** @returns null when an entry follows the one before it, or the entries between were removed by their age */
function gapBefore(link: Link, last: Link | null, nowMs: number): string | null {
  const { number, previous, previousAtMs } = link
  const before = last?.number ?? 0
  if (number <= before) return 'is there a second time, or out of order'
  if (number === before + 1)
    return previous === (last?.hash ?? '') ? null : 'does not follow the one before it'
  // ClickHouse removes old entries in no particular order.
  return nowMs - previousAtMs < KEPT_MS
    ? `follows entry ${before}: those between are missing`
    : null
}

const timeOf = ({ atMs }: AuditRecord): string => new Date(atMs).toISOString()
