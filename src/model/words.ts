/**
 * A word is a run of letters and digits. Scripts that are written without blanks have no such words: a run of their characters
 * is a text of its own, and any part of it can be searched. The long vowel mark belongs to Hiragana and Katakana.
 */
const SCRIPTS = ['Han', 'Hiragana', 'Katakana', 'Thai', 'Lao', 'Khmer', 'Myanmar']
const LONG_VOWEL = 'ー'

/** The characters of those scripts, for a class of RE2. */
export const UNSPACED = SCRIPTS.map((script) => `\\p{${script}}`).join('') + LONG_VOWEL

const unspaced = SCRIPTS.map((script) => `\\p{Script=${script}}`).join('') + LONG_VOWEL
const WORDS = new RegExp(`[${unspaced}]+|[[\\p{L}\\p{N}]--[${unspaced}]]+`, 'gv')
const IS_UNSPACED = new RegExp(`^[${unspaced}]`, 'v')

/** Splits a text into its words in lower case, the content of the column `search_words`. */
export const toWords = (text: string): readonly string[] => text.toLowerCase().match(WORDS) ?? []

/** Whether a text begins with a character of a script that puts no blanks between words, such as Chinese. */
export const isUnspaced = (text: string): boolean => IS_UNSPACED.test(text)
