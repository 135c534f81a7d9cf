const ROUNDS = 8

/**
 * What two things cost in CPU time of this process, all its threads together: by turns, so that whatever else
 * the machine does strikes both.
 *
 * @returns ms
 */
export async function cpuOfBoth(
  first: () => Promise<unknown>,
  second: () => Promise<unknown>,
): Promise<readonly [first: number, second: number]> {
  const costs: [number, number] = [0, 0]
  for (let round = 0; round < ROUNDS; round++) {
    costs[0] += await cpuOf(first)
    costs[1] += await cpuOf(second)
  }
  return costs
}

async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
