/** A body that waits for a worker. */
export interface FairJob {
  /** The sender, whose bodies have one share together. */
  readonly owner: string
  readonly bytes: number
  /** The estimated time of a worker; set by the queue. */
  estimatedMs: number
}

/** Measured by bench/flow/ingest.ts: smaller tasks spread better over the threads, larger ones save messages to threads. */
const TASK_BYTES = 2 * 1024 * 1024
export const TASK_BODIES = 512
/** The most time that a task of several bodies is to take; a single body may take longer. */
export const TASK_MS = 25
/**
 * A body that takes longer shares no task with bodies of other owners, because they would wait for
 * its templates and its record in the WAL as well.
 */
const SHARED_MS = 2
/** The estimate for an owner whose bodies were not measured yet; it is that of records that must be parsed. */
const FIRST_MS_PER_BYTE = 20e-6
/** Above this number of owners, idle ones are forgotten. */
const REMEMBERED_OWNERS = 1_000

interface Owner<J> {
  /** Jobs from `head` on are waiting. */
  jobs: J[]
  head: number
  /** The number of tasks at the workers with jobs of this owner. */
  tasks: number
  /** The worker time received, in the virtual time of the queue. */
  servedMs: number
  msPerByte: number
}

/**
 * The bodies that wait for a worker, in fair order: start-time fair queueing (Goyal et al., SIGCOMM 1996) over their
 * owners, by worker time. The next body is one of the owner that received the least time. A body counts with an
 * estimate when it is taken, from the time per byte of the owner's last bodies, and with the measured time (of `SpentTime`)
 * when it is done. An owner that was idle begins where the queue's clock is, so nobody saves up time. Therefore an owner gets at
 * least an equal share, whatever the others send, and the whole when nobody else sends.
 *
 * A body that is being encoded can't be interrupted. So the pipeline has one thread more than an owner may use at once,
 * and bodies that take long (more than TASK_MS) leave one thread to the others.
 */
export class FairQueue<J extends FairJob> {
  readonly #owners = new Map<string, Owner<J>>()
  readonly #maxTasks: number
  /** Owners with waiting jobs. */
  readonly #waiting = new Set<Owner<J>>()
  #length = 0
  #clockMs = 0

  /** @param maxTasks the most tasks of an owner at the workers */
  constructor(maxTasks: number) {
    this.#maxTasks = maxTasks
  }

  get length(): number {
    return this.#length
  }

  push(job: J): void {
    const owner = this.#ownerOf(job)
    if (owner.tasks === 0 && owner.head === owner.jobs.length)
      owner.servedMs = Math.max(owner.servedMs, this.#clockMs)
    owner.jobs.push(job)
    this.#waiting.add(owner)
    this.#length++
  }

  /** The job that the next task begins with. @param light only one that takes no longer than TASK_MS */
  next(light: boolean): J | null {
    const owner = this.#next(light)
    return owner?.jobs[owner.head] ?? null
  }

  /** Takes the jobs of the next task. @param light see `next` */
  take(light: boolean): J[] {
    const jobs: J[] = []
    let bytes = 0
    let ms = 0
    let longestMs = 0
    for (let owner = this.#next(light); owner !== null; owner = this.#next(true)) {
      const job = owner.jobs[owner.head]
      if (job === undefined) break
      const estimatedMs = job.bytes * owner.msPerByte
      const isFull =
        bytes + job.bytes > TASK_BYTES || jobs.length >= TASK_BODIES || ms + estimatedMs > TASK_MS
      longestMs = Math.max(longestMs, estimatedMs)
      const isAlone = longestMs > SHARED_MS && jobs[0]?.owner !== job.owner
      if (jobs.length > 0 && (isFull || isAlone)) break
      this.#remove(owner)
      this.#clockMs = Math.max(this.#clockMs, owner.servedMs)
      job.estimatedMs = estimatedMs
      owner.servedMs += estimatedMs
      jobs.push(job)
      bytes += job.bytes
      ms += estimatedMs
    }
    for (const owner of this.#ownersOf(jobs)) owner.tasks++
    return jobs
  }

  /** Charges jobs that a worker gets once more. @returns the estimated time */
  again(jobs: readonly J[]): number {
    let ms = 0
    for (const job of jobs) {
      const owner = this.#ownerOf(job)
      job.estimatedMs = job.bytes * owner.msPerByte
      owner.servedMs += job.estimatedMs
      ms += job.estimatedMs
    }
    for (const owner of this.#ownersOf(jobs)) owner.tasks++
    return ms
  }

  /** Ends a task. @param jobs all jobs of the task */
  end(jobs: readonly J[]): void {
    for (const owner of this.#ownersOf(jobs)) owner.tasks--
    if (this.#owners.size > REMEMBERED_OWNERS) this.#forgetIdle()
  }

  /** Counts the time that a job took instead of the estimate. */
  measured(job: J, ms: number): void {
    const owner = this.#ownerOf(job)
    owner.servedMs += ms - job.estimatedMs
    const rate = ms / job.bytes
    // The estimate grows at once and shrinks slowly.
    owner.msPerByte = Math.max(rate, owner.msPerByte * 0.9 + rate * 0.1)
  }

  /** Puts back jobs that a worker did not get to; they are the next of their owners. */
  putBack(jobs: readonly J[]): void {
    for (const job of jobs.toReversed()) {
      const owner = this.#ownerOf(job)
      owner.servedMs -= job.estimatedMs
      if (owner.head > 0) owner.jobs[--owner.head] = job
      else owner.jobs.unshift(job)
      this.#waiting.add(owner)
      this.#length++
    }
  }

  #ownerOf({ owner: name }: J): Owner<J> {
    const known = this.#owners.get(name)
    if (known !== undefined) return known
    const owner = { jobs: [], head: 0, tasks: 0, servedMs: 0, msPerByte: FIRST_MS_PER_BYTE }
    this.#owners.set(name, owner)
    return owner
  }

  #ownersOf(jobs: readonly J[]): Set<Owner<J>> {
    return new Set(jobs.map((job) => this.#ownerOf(job)))
  }

  #next(light: boolean): Owner<J> | null {
    let best: Owner<J> | null = null
    for (const owner of this.#waiting) {
      if (owner.tasks >= this.#maxTasks) continue
      if (best !== null && best.servedMs <= owner.servedMs) continue
      const bytes = owner.jobs[owner.head]?.bytes ?? 0
      if (!light || bytes * owner.msPerByte <= TASK_MS) best = owner
    }
    return best
  }

  #remove(owner: Owner<J>): void {
    owner.head++
    this.#length--
    if (owner.head < owner.jobs.length) {
      // Removed jobs are dropped in batches, because shifting each would move the others.
      if (owner.head < TASK_BODIES) return
      owner.jobs = owner.jobs.slice(owner.head)
      owner.head = 0
      return
    }
    owner.jobs = []
    owner.head = 0
    this.#waiting.delete(owner)
  }

  #forgetIdle(): void {
    for (const [name, owner] of this.#owners)
      if (owner.tasks === 0 && owner.jobs.length === 0) this.#owners.delete(name)
  }
}
