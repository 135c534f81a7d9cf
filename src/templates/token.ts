/** What a token is. Words and soft words are text, the others are values. */
export const TOKEN = {
  word: 1,
  /** has exactly one digit (`ssh2`, `L3`): reads as text, but does not tell templates apart */
  soft: 2,
  value: 3,
  /** `15:42:50` and what else a colon joins to a plain number */
  time: 4,
  /** `2005-06-03`, `03/Jun/2005` */
  date: 5,
  /** a number with a sign */
  signed: 6,
} as const

/** Numbers of a token in a token array: kind, start, end, hash. */
export const TOKEN_STRIDE = 4

export const FNV_SEED = 0x811c9dc5 | 0
export const FNV_PRIME = 0x01000193
