import { Connection, type HttpReply } from './connection.js'
import type { Target } from './service.js'

/** The API as a logged-in client sees it, over one keep-alive connection. */
export class Api {
  readonly #connection: Connection
  readonly #token: string

  private constructor(connection: Connection, token: string) {
    this.#connection = connection
    this.#token = token
  }

  /** @throws Error when the log-in is refused */
  static async login(target: Target): Promise<Api> {
    const connection = new Connection(target.api)
    const body = Buffer.from(JSON.stringify({ email: target.email, password: target.password }))
    const head = 'POST /api/auth/login HTTP/1.1\r\nContent-Type: application/json\r\n'
    const reply = await connection.request(head, body)
    if (reply.status !== 200) throw new Error(`login answered ${reply.status} ${reply.body}`)
    return new Api(connection, String(field(JSON.parse(reply.body), 'access_token')))
  }

  get token(): string {
    return this.#token
  }

  /** A further connection of the same user. */
  another(target: Target): Api {
    return new Api(new Connection(target.api), this.#token)
  }

  get(path: string): Promise<HttpReply> {
    return this.#connection.request(
      `GET ${path} HTTP/1.1\r\nAuthorization: Bearer ${this.#token}\r\n`,
    )
  }

  /** @throws Error on any status from 400 on */
  async change(method: 'POST' | 'PATCH', path: string, body: unknown): Promise<unknown> {
    const head =
      `${method} ${path} HTTP/1.1\r\nAuthorization: Bearer ${this.#token}\r\n` +
      'Content-Type: application/json\r\n'
    const reply = await this.#connection.request(head, Buffer.from(JSON.stringify(body)))
    if (reply.status >= 400) throw new Error(`${path} answered ${reply.status} ${reply.body}`)
    return JSON.parse(reply.body)
  }

  /**
   * @returns null when the service has no such route
   * @throws Error on any other status than 200
   */
  async json(path: string): Promise<unknown> {
    const reply = await this.get(path)
    if (reply.status === 404 && reply.body.includes('route_not_found')) return null
    if (reply.status !== 200) throw new Error(`${path} answered ${reply.status} ${reply.body}`)
    return JSON.parse(reply.body)
  }

  close(): void {
    this.#connection.close()
  }
}

/** A field of an untrusted value; undefined when it is absent. */
export const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null
    ? Object.getOwnPropertyDescriptor(value, name)?.value
    : undefined

export const numberField = (value: unknown, name: string): number => Number(field(value, name) ?? 0)

export const listField = (value: unknown, name: string): readonly unknown[] => {
  const list = field(value, name)
  return Array.isArray(list) ? list : []
}

export const textField = (value: unknown, name: string): string => {
  const text = field(value, name)
  return typeof text === 'string' ? text : ''
}
