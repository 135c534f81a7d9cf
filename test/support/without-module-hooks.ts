/**
 * Loaded before each test by `npm test`. The runner of node-tap makes each process of a test hand over every module that it
 * imports, for reports of coverage, which are off here: a quarter of the CPU of a unit test.
 */
import module from 'node:module'

module.register = () => undefined
