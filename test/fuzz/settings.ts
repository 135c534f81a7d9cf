/** Repeatable: the seed is printed with every run, and `FUZZ_SEED` repeats it. */
export const SEED = Number(process.env['FUZZ_SEED'] ?? 1)
/** How much more than by default is tried: `FUZZ_TIMES=100 npm run test:fuzz` takes hours. */
export const TIMES = Number(process.env['FUZZ_TIMES'] ?? 1)
/** Whether inputs that reach something new are written to the corpus. */
export const KEEPS = process.env['FUZZ_KEEP'] !== undefined
/** Each input is written here before it is tried: what hangs or ends the process can be found. */
export const TRACE = process.env['FUZZ_TRACE'] ?? null
