import { isDigit } from './bytes'

@inline
function two(at: usize): u32 {
  const tens = <u32>load<u8>(at) - 48
  const units = <u32>load<u8>(at + 1) - 48
  return tens < 10 && units < 10 ? tens * 10 + units : 1000
}

// The caches of the last day and the last minute start with the valid entry 1970-01-01.
let lastDay: u32 = 1970_01_01
let lastDayMs: i64 = 0
/** The first 16 bytes of the last time (`1970-01-01T00:00`), and their ms since 1970. */
const lastMinute: usize = memory.data<u8>([49, 57, 55, 48, 45, 48, 49, 45, 48, 49, 84, 48, 48, 58, 48, 48])
let lastMinuteMs: i64 = 0

/**
 * Reads `2026-11-21T09:28:19.123Z`: T or blank, no fraction or one of up to nine digits, `Z`, an offset `+hh:mm`, or
 * no zone where that is UTC.
 * @returns ms since 1970, -1 for any other form or a date that does not exist
 */
export function isoTime(start: usize, end: usize, mayLackZone: bool): i64 {
  if (end - start < 19) return -1
  const head = v128.load(start)
  if (!i8x16.all_true(i8x16.eq(head, v128.load(lastMinute)))) {
    const minuteMs = minuteOf(start)
    if (minuteMs == i64.MIN_VALUE) return -1
    lastMinuteMs = minuteMs
    v128.store(lastMinute, head)
  }
  const second = two(start + 17)
  if (load<u8>(start + 16) != 0x3a || second > 59) return -1
  const whole = lastMinuteMs + <i64>(second * 1000)
  if (end - start == 24 && load<u8>(start + 19) == 0x2e && load<u8>(start + 23) == 0x5a) {
    const tens = two(start + 20)
    const units = <u32>load<u8>(start + 22) - 48
    return tens < 100 && units < 10 ? whole + <i64>(tens * 10 + units) : -1
  }
  return withFraction(whole, start + 19, end, mayLackZone)
}

/** Reads `2026-11-21T09:28`. @returns ms since 1970, the least i64 for anything else */
function minuteOf(start: usize): i64 {
  const separator = load<u8>(start + 10)
  if (separator != 0x54 && separator != 0x20) return i64.MIN_VALUE
  if (load<u8>(start + 4) != 0x2d || load<u8>(start + 7) != 0x2d || load<u8>(start + 13) != 0x3a) return i64.MIN_VALUE
  const century = two(start)
  const years = two(start + 2)
  const month = two(start + 5)
  const dayOfMonth = two(start + 8)
  const hour = two(start + 11)
  const minute = two(start + 14)
  if (century > 99 || years > 99 || hour > 23 || minute > 59) return i64.MIN_VALUE
  const day = ((century * 100 + years) * 100 + month) * 100 + dayOfMonth
  if (day != lastDay) {
    const dayMs = civilDayMs(century * 100 + years, month, dayOfMonth)
    if (dayMs == i64.MIN_VALUE) return i64.MIN_VALUE
    lastDay = day
    lastDayMs = dayMs
  }
  return lastDayMs + <i64>((hour * 60 + minute) * 60_000)
}

/** Adds the fraction and the zone at `from` to a time. @returns -1 when they are neither */
function withFraction(whole: i64, from: usize, end: usize, mayLackZone: bool): i64 {
  let at = from
  let ms = whole
  if (at < end && load<u8>(at) == 0x2e) {
    const first = ++at
    let scale: i64 = 100
    while (at < end && isDigit(load<u8>(at))) {
      ms += (<i64>load<u8>(at) - 48) * scale
      scale /= 10
      at++
    }
    if (at == first || at - first > 9) return -1
  }
  if (at == end) return mayLackZone ? ms : -1
  const sign = load<u8>(at)
  if (sign == 0x5a) return at + 1 == end ? ms : -1
  if ((sign != 0x2b && sign != 0x2d) || end - at != 6 || load<u8>(at + 3) != 0x3a) return -1
  const hours = two(at + 1)
  const minutes = two(at + 4)
  if (hours > 23 || minutes > 59) return -1
  const offset = <i64>(hours * 60 + minutes) * 60_000
  return sign == 0x2d ? ms + offset : ms - offset
}

/**
 * Converts a civil date to ms since 1970.
 *
 * @returns the least i64 for a date that does not exist
 * Source: the era-based count of days in Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms".
 */
function civilDayMs(year: u32, month: u32, day: u32): i64 {
  if (year == 0 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return i64.MIN_VALUE
  const y: i64 = <i64>year - (month <= 2 ? 1 : 0)
  const era = y / 400
  const yearOfEra = y - era * 400
  const shifted = <i64>month + (month > 2 ? -3 : 9)
  const dayOfYear = (153 * shifted + 2) / 5 + <i64>day - 1
  const dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
  return (era * 146_097 + dayOfEra - 719_468) * 86_400_000
}

function daysIn(year: u32, month: u32): u32 {
  if (month == 2) return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31
}

/**
 * Reads an epoch number; its size distinguishes seconds, milli- and microseconds.
 *
 * @returns ms since 1970
 */
export function epochTime(start: usize, end: usize): i64 {
  let value: i64 = 0
  for (let at = start; at < end; at++) value = value * 10 + <i64>load<u8>(at) - 48
  if (value < 100_000_000_000) return value * 1000
  return value < 100_000_000_000_000 ? value : value / 1000
}
