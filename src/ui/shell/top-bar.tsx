import type { ComponentChildren } from 'preact'

import { Icon } from '../lib/icon.js'
import { logOut, user } from '../lib/session.js'
import { theme } from '../lib/settings.js'
import { Menu } from './menu.js'
import { openKeys, openPalette } from './open-dialogs.js'
import { ZoneMenu } from './zone-menu.js'

const isMac = navigator.platform.startsWith('Mac')

interface TopBarProps {
  readonly title: string
  readonly children?: ComponentChildren
}

/** The head of every screen: its name, its own controls, and what is the same everywhere. */
export function TopBar({ title, children }: TopBarProps) {
  return (
    <header class="top-bar">
      <h1>{title}</h1>
      <div class="own">{children}</div>
      <button class="find" onClick={openPalette} title="Go to or do something">
        <Icon name="search" size={14} />
        <span>Find</span>
        <kbd>{isMac ? '⌘' : 'Ctrl '}K</kbd>
      </button>
      <ZoneMenu />
      <UserMenu />
    </header>
  )
}

const THEMES = [
  { value: 'auto', icon: 'monitor', label: 'As the system' },
  { value: 'light', icon: 'sun', label: 'Light' },
  { value: 'dark', icon: 'moon', label: 'Dark' },
] as const

function UserMenu() {
  return (
    <Menu label="Theme, keys and log-out" face={<Icon name="user" />} class="quiet square">
      {(close) => (
        <>
          <p class="who">
            <strong>{user.value?.email}</strong>
            <span>{user.value?.role}</span>
          </p>
          <div class="segments" role="group" aria-label="Theme">
            {THEMES.map(({ value, icon, label }) => (
              <button
                key={value}
                aria-pressed={theme.value === value}
                aria-label={label}
                title={label}
                onClick={() => {
                  theme.value = value
                }}
              >
                <Icon name={icon} />
              </button>
            ))}
          </div>
          <button
            class="item"
            onClick={() => {
              close()
              openKeys()
            }}
          >
            <Icon name="info" /> Keys <kbd>?</kbd>
          </button>
          <button class="item" onClick={() => void logOut()}>
            <Icon name="log-out" /> Log out
          </button>
        </>
      )}
    </Menu>
  )
}
