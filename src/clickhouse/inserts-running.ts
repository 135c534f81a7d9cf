import { statement } from './statement.js'

export const insertsSql = statement<{ readonly seconds: number }, { readonly running: number }>(
  'inserts_running',
)
export const clusterInsertsSql = statement<
  { readonly cluster: string; readonly seconds: number },
  { readonly running: number }
>('cluster_inserts_running')
