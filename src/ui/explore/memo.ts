import { Component, createElement, type FunctionComponent } from 'preact'

/** A component that is rendered again only when a property has changed. */
export function memo<P extends object>(draw: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return Object.entries(next).some(([name, value]) => this.props[name as keyof P] !== value)
    }

    override render() {
      return createElement(draw, this.props)
    }
  }
  return Memo as unknown as FunctionComponent<P> // a class is used as a function component is
}
