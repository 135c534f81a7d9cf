/*
 * The numbers that cross between TypeScript and WebAssembly. Both sides compile this file, so it holds plain constants
 * only: AssemblyScript knows no `as const` objects.
 */

/** Arrays of a block, by row; `addressOf` and `lengthOf` take these. */
export const ROW_HASHES = 0
/** Milliseconds since 1970 as i64. */
export const ROW_TIMES = 1
export const ROW_COUNTS = 2
export const ROW_SEVERITIES = 3
export const ROW_TYPES = 4
export const ROW_TEMPLATES = 5
/** Texts of the column `message`. */
export const MESSAGES = 6
/** Rows whose signature no thread knows: row, signature (2), message offset in its column, length. */
export const MISSES = 7
export const MISS_INTS = 5
/** Rows with characters beyond ASCII: row, message offset, length, trace offset, length, host. */
export const WIDE_ROWS = 8
export const WIDE_INTS = 6
/** The messages of wide rows, whole. */
export const WIDE_MESSAGES = 9
/** Milliseconds since 1970 as f64. */
export const ROW_TIMES_F64 = 10
/** For each bulk document that `readHeaded` has read: the number of its action line. */
export const PASSED_HEADS = 11

/** Columns that are dictionaries of words. */
export const SOURCE_WORDS = 0
export const HOST_WORDS = 1
export const ENVIRONMENT_WORDS = 2
export const CONSTANT_TEXT_WORDS = 3
/** The paths of the attributes of a row, joined; see `model/stored-tags.ts`. */
export const ATTRIBUTE_NAME_WORDS = 4

/** Columns of texts that most rows lack. */
export const TRACE_TEXTS = 0
export const SPAN_TEXTS = 1
export const SUMMARY_TEXTS = 2
export const DEDUP_KEY_TEXTS = 3
/** The JSON of tags that the attributes do not give. */
export const TAGS_TEXTS = 4
/** The values of the attributes of a row, joined. */
export const ATTRIBUTE_VALUE_TEXTS = 5

/**
 * The texts of a record beside its message: those of the columns above, the paths of its attributes, the JSON of its tags,
 * and what is hashed in place of that.
 */
export const RECORD_TEXTS = 9

/** Members of a record whose texts can be set, by their bits; `assembly/line.ts` has the others. */
export const MEMBER_SOURCE = 1
export const MEMBER_SEVERITY = 2
export const MEMBER_HOST = 4
export const MEMBER_ENVIRONMENT = 5
export const MEMBER_TAGS = 11

/** Replaces a level when the OTLP record must be parsed. */
export const UNREAD_LEVEL = 254

/** Priorities of syslog: eight for each of 24 facilities. */
export const PRIORITIES = 192
/** For each: the length of its severity and that of its tags, then both; the tags are JSON without the first brace. */
export const PRIORITY_BYTES = 64

/** The verdict on the messages of a source in one body. */
export const STORE_MESSAGES = 1
export const DROP_MESSAGES = 2
export const PARSE_MESSAGES = 3

/** Arrays of a batch of the dedup window; `windowAt` takes these. */
export const WINDOW_HASHES = 0
export const WINDOW_TIMES = 1
export const WINDOW_OWNERS = 2
export const WINDOW_IDS = 3
export const WINDOW_BEGINS = 4
export const WINDOW_PRIORITIES = 5

/** Kinds of tokens. Words and soft words are text, the others are values. */
export const TOKEN_WORD = 1
/** A word with exactly one digit (`ssh2`, `L3`), which is text but does not distinguish templates. */
export const TOKEN_SOFT = 2
export const TOKEN_VALUE = 3
/** Such as `15:42:50`: plain numbers joined by colons. */
export const TOKEN_TIME = 4
/** Such as `2005-06-03` or `03/Jun/2005`. */
export const TOKEN_DATE = 5
/** A number with a sign. */
export const TOKEN_SIGNED = 6
/** Numbers of a token: kind, start, end, hash. */
export const TOKEN_INTS = 4

/** A message is scanned this far, and for this many tokens; the rest is one value. */
export const MAX_SCAN_BYTES = 8192
export const MAX_TOKENS = 256
/** A chain adds several tokens at once. */
export const TOKEN_SLACK = 32
