/**
 * The names of attributes that hold an exception or a part of it, the best first. They are in lower case, without `_ - . @` and
 * blanks: `errorstacktrace` is `error.stack_trace`.
 */
export const EXCEPTION_NAMES: readonly string[] = (
  'errorstacktrace errstack errorstack exceptionstacktrace stacktrace stack thrownextendedstacktrace ' +
  'exctext excinfo exception thrown error err errormessage exceptionmessage fullmessage exceptiontype exc'
).split(' ')
