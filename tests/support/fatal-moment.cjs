/**
 * Required before a program (NODE_OPTIONS, so that its threads have it, too): counts what it does to files below its working directory, in each thread, and at a given
 * moment ends the process (SIGKILL) or the thread. A write that is chosen is first half done. Environment:
 *   FATAL_AT=main:17 or worker:5   the event, counted from 1; nothing happens without it
 *   FATAL_HOW=kill or thread       SIGKILL of the process, or the end of the thread with code 7
 *   EVENTS_INTO=path               a byte for each event goes to <path>.main and <path>.worker
 */
const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');
const { resolve, sep } = require('node:path');
const { isMainThread } = require('node:worker_threads');

const here = isMainThread ? 'main' : 'worker';
const { FATAL_AT = '', FATAL_HOW = 'kill', EVENTS_INTO } = process.env;
const [thread, number] = FATAL_AT.split(':');
const fatal = thread === here ? Number(number) : Number.NaN;
const root = process.cwd() + sep;
const append = fs.appendFileSync;
let count = 0;

function isFatal() {
  count += 1;
  if (EVENTS_INTO) append(`${EVENTS_INTO}.${here}`, '.');
  return count === fatal;
}

function end() {
  if (FATAL_HOW === 'thread') process.exit(7);
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => undefined);
}

const isOurs = path => typeof path === 'string' && (resolve(path) + sep).startsWith(root) && resolve(path) !== EVENTS_INTO;
const half = data => data.slice(0, Math.floor(data.length / 2));
const { promises } = fs;

for (const name of ['mkdir', 'rename', 'rm', 'link', 'unlink', 'open', 'writeFile']) {
  const original = promises[name];
  promises[name] = async (path, ...rest) => {
    if (isOurs(path) && isFatal()) {
      if (name === 'writeFile') await original(path, half(rest[0]), ...rest.slice(1));
      await end();
    }
    const result = await original(path, ...rest);
    if (name === 'open' && isOurs(path)) {
      patch(result);
      ours.add(result);
    }
    return result;
  };
}

const ours = new WeakSet();
let patched = false;

/** The class of file handles is known by its instances only. */
function patch(handle) {
  if (patched) return;
  patched = true;
  const methods = Object.getPrototypeOf(handle);
  for (const name of ['write', 'appendFile', 'sync', 'truncate']) {
    const original = methods[name];
    methods[name] = async function (...args) {
      if (ours.has(this) && isFatal()) {
        if (name === 'write') await original.call(this, args[0], args[1] ?? 0, (args[0].length - (args[1] ?? 0)) >> 1);
        if (name === 'appendFile') await original.call(this, half(args[0]));
        await end();
      }
      return original.apply(this, args);
    };
  }
}

syncBuiltinESMExports();
