import type { EventSink } from '../../model/event.js'

/** Gives events without a host the address of their sender. */
export const withSenderHost = (sink: EventSink, sender: string): EventSink => ({
  event: (line, event) => sink.event(line, event.host === '' ? { ...event, host: sender } : event),
  reject: (line, rejection) => sink.reject(line, rejection),
})
