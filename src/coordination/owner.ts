import { statSync } from 'node:fs'

/**
 * Refuses to write into files of another user. As root it would work, and leave files that the service can't open.
 *
 * @param path a file or directory of `dataDir`; one that does not exist belongs to nobody
 * @param uid undefined where the system has no users
 * @throws Error saying who has to run it
 */
export function refuseOtherOwner(
  { dataDir, path, help }: { dataDir: string; path: string; help: string },
  uid: number | undefined = process.getuid?.(),
): void {
  const owner = statSync(path, { throwIfNoEntry: false })?.uid
  if (uid === undefined || owner === undefined || owner === uid) return
  throw new Error(`DATA_DIR ${dataDir} belongs to user ${owner}, and this is user ${uid}: ${help}`)
}
