import {
  boolean,
  choice,
  integer,
  limit,
  origins,
  ranges,
  secret,
  textSetting,
  url,
} from './setting.js'
import { oidcProviders } from './providers.js'
import { email, passwordLoginOnly, publicUrl } from './values.js'

/** The settings of users: their logins, passwords, second factors and cookies. */
export const ACCOUNT_SETTINGS = {
  jwtSecret: secret('JWT_SECRET', 32, 'signs tokens; unset = generated once and kept in DATA_DIR'),
  dataKey: secret(
    'DATA_KEY',
    32,
    'encrypts secrets in the database, such as keys of second factors; unset = generated once and kept in ' +
      'DATA_DIR, or derived from JWT_SECRET where instances share a database',
  ),
  accessTokenExpireMinutes: integer(
    'ACCESS_TOKEN_EXPIRE_MINUTES',
    60,
    [1, 1440],
    'lifetime of an access token',
  ),
  refreshTokenExpireDays: integer(
    'REFRESH_TOKEN_EXPIRE_DAYS',
    7,
    [1, 90],
    'lifetime of a refresh token',
  ),
  sessionExpireHours: integer(
    'SESSION_EXPIRE_HOURS',
    720,
    [1, 87_600],
    'hours after which a login ends, however often its tokens are refreshed',
  ),
  cookieSecure: boolean(
    'COOKIE_SECURE',
    false,
    'cookies over HTTPS only; must be true in production',
  ),
  cookieSamesite: choice(
    'COOKIE_SAMESITE',
    'Strict',
    ['Strict', 'Lax', 'None'],
    'None needs COOKIE_SECURE=true and CORS_ORIGINS',
  ),
  corsOrigins: origins(
    'CORS_ORIGINS',
    'origins, comma-separated, whose pages may call the API with cookies',
  ),
  trustedProxies: ranges(
    'TRUSTED_PROXIES',
    'proxies (addresses or CIDR ranges) whose X-Forwarded-For is trusted',
  ),
  publicUrl,
  oidcProviders,
  passwordLoginOnly,
  usersPerCreator: integer(
    'USERS_PER_CREATOR',
    100_000,
    [1, 1_000_000],
    'users that one admin, or one provider of single sign-on, may create',
  ),
  adminEmail: email,
  adminPassword: secret(
    'ADMIN_PASSWORD',
    8,
    'password of the first superadmin; unset = generated and printed once',
  ),
  loginLimit: limit('LOGIN_LIMIT', '10/60', 'logins per address and e-mail; six times per address'),
  loginFailures: limit(
    'LOGIN_FAILURES',
    '100/86400',
    'wrong passwords per address and account; after ten times as many per account, new addresses have one an hour',
  ),
  requireSecondFactor: choice(
    'REQUIRE_SECOND_FACTOR',
    'none',
    ['none', 'admins', 'all'],
    'roles that have to turn on a second factor before anything else; admins = admin and superadmin',
  ),
  temporaryPasswordHours: integer(
    'TEMPORARY_PASSWORD_HOURS',
    168,
    [1, 8_760],
    'hours until a temporary password expires',
  ),
  secondFactorLimit: limit(
    'SECOND_FACTOR_LIMIT',
    '100/86400',
    'codes of authenticator apps per user, right and wrong ones',
  ),
  smtpUrl: url(
    'SMTP_URL',
    ['smtp:', 'smtps:'],
    'mail server of notices (channels of the type email) and of what users are told about their accounts (`smtps://user:password@host`); unset = no mail is sent',
  ),
  mailFrom: textSetting('MAIL_FROM', 'log-analytics@localhost', 'sender of all mails'),
} as const
