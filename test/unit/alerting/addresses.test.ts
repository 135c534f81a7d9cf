import { test } from 'tap'
import { checkedAddress } from '../../../src/alerting/addresses.js'

const ALWAYS = [
  '0.0.0.0',
  '169.254.169.254',
  '224.0.0.1',
  '255.255.255.255',
  '[::]',
  '[fe80::1]',
  '[ff02::1]',
  '[::ffff:169.254.169.254]',
  '[::ffff:a9fe:a9fe]',
  '[::ffff:0:a9fe:a9fe]',
  '[64:ff9b::a9fe:a9fe]',
  '[64:ff9b:1::a9fe:a9fe]',
  '[2001:0:a9fe:a9fe::1]',
  '[fec0::1]',
  '192.0.0.192',
  '198.18.0.1',
  '[fd00:ec2::254]',
  '[fd20:ce::254]',
  '100.100.100.200',
  '168.63.129.16',
]
const PRIVATE = [
  '10.1.2.3',
  '127.0.0.1',
  '172.16.0.1',
  '192.168.1.1',
  '100.64.0.1',
  '[::1]',
  '[fd12::1]',
]
const PUBLIC = ['93.184.216.34', '172.32.0.1', '[2606:2800:220:1::1]']

void test('forbidden addresses are refused, private ones unless they are allowed', async (t) => {
  for (const host of ALWAYS) {
    await t.rejects(checkedAddress(host, true), { name: 'AddressError' }, host)
    await t.rejects(checkedAddress(host, false), { name: 'AddressError' }, host)
  }
  for (const host of PRIVATE) {
    await t.rejects(checkedAddress(host, false), { name: 'AddressError' }, host)
    t.equal(await checkedAddress(host, true), host.replace(/[[\]]/g, ''), host)
  }
  for (const host of PUBLIC)
    t.equal(await checkedAddress(host, false), host.replace(/[[\]]/g, ''), host)
  await t.rejects(checkedAddress('localhost', false), { name: 'AddressError' }, 'by its name')
})
