const ROUNDS = 8

/**
 * Measures the CPU time of two functions, all threads of this process together. They run alternately, so that other
 * load of the machine affects both.
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
