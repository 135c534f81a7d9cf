import * as layout from '../layout'

/** Kinds of tokens, see `layout.ts`. */
export const WORD_TOKEN: u32 = layout.TOKEN_WORD
export const SOFT: u32 = layout.TOKEN_SOFT
export const VALUE: u32 = layout.TOKEN_VALUE
export const TIME: u32 = layout.TOKEN_TIME
export const DATE: u32 = layout.TOKEN_DATE
export const SIGNED: u32 = layout.TOKEN_SIGNED

export const TOKEN_BYTES: u32 = layout.TOKEN_INTS * 4

export const FNV_SEED: u32 = 0x811c9dc5
export const FNV_PRIME: u32 = 0x01000193

/** A longer word is a value. */
export const MAX_WORD_BYTES: usize = 96
