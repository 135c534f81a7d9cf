import { AppError } from '../model/errors.js'

const EXPORTS_PER_USER = 2
/** The most exports at once; each keeps two chunks in memory. */
const EXPORTS = 8

/** Limits the running exports. */
export type ExportSlots = ReturnType<typeof createExportSlots>

export function createExportSlots() {
  const byUser = new Map<string, number>()
  let all = 0
  return {
    /** @returns a function that ends the export. @throws AppError overloaded when there are too many */
    begin: (userId: string): (() => void) => {
      const own = byUser.get(userId) ?? 0
      if (own >= EXPORTS_PER_USER)
        throw new AppError('overloaded', `a user has at most ${EXPORTS_PER_USER} exports at once`)
      if (all >= EXPORTS)
        throw new AppError('overloaded', `there are at most ${EXPORTS} exports at once`)
      byUser.set(userId, own + 1)
      all++
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        all--
        const left = (byUser.get(userId) ?? 1) - 1
        if (left === 0) byUser.delete(userId)
        else byUser.set(userId, left)
      }
    },
  }
}
