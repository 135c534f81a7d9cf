/** What a token is; see `mining/token.ts`, whose numbers these are. */
export const WORD_TOKEN: u32 = 1
export const SOFT: u32 = 2
export const VALUE: u32 = 3
export const TIME: u32 = 4
export const DATE: u32 = 5
export const SIGNED: u32 = 6

/** kind, start, end, hash */
export const TOKEN_BYTES: u32 = 16

export const FNV_SEED: u32 = 0x811c9dc5
export const FNV_PRIME: u32 = 0x01000193

/** A longer word is a value: no vocabulary has it. */
export const MAX_WORD_BYTES: usize = 96
