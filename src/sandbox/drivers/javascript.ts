/**
 * As python.ts: the same requests and answers, in Node. Programs may be CommonJS or ES modules. All in a function, so
 * that cells may use every name.
 */
export const JAVASCRIPT_DRIVER = String.raw`
(async () => {
const fs = require('fs'), path = require('path'), vm = require('vm'), util = require('util');
const modules = require('module');
const { parse, stringify } = JSON;
const { readSync, writeSync } = fs;
globalThis.require = require;
globalThis.module = undefined;

let pending = Buffer.alloc(0);
const chunk = Buffer.alloc(65536);
function request() {
  for (;;) {
    const end = pending.indexOf(10);
    if (end >= 0) {
      const line = pending.subarray(0, end).toString();
      pending = pending.subarray(end + 1);
      return parse(line);
    }
    const count = readSync(3, chunk);
    if (count === 0) return undefined;
    pending = Buffer.concat([pending, chunk.subarray(0, count)]);
  }
}
function put(descriptor, data) {
  while (data.length > 0) data = data.subarray(writeSync(descriptor, data));
}
const reply = answer => put(4, Buffer.from(stringify(answer) + '\n'));
const failed = error => {
  const text = error instanceof Error || util.types.isNativeError(error) ? String(error.stack) : 'Uncaught ' + util.inspect(error);
  const memory = /Array buffer allocation failed|Invalid array length|heap out of memory/.test(text);
  return { ending: memory ? 'memory' : 'error', error: text.replace(/\n    at [^\n]*(\[eval\]|node:|evalScript)[^\n]*/g, '') + '\n' };
};

function run({ source, files, stdin, args }) {
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(name), { recursive: true });
    fs.writeFileSync(name, text);
  }
  fs.writeFileSync('.stdin', stdin);
  fs.closeSync(0); // the next descriptor that is opened is 0
  fs.openSync('.stdin');
  fs.unlinkSync('.stdin');
  const main = path.resolve(/^\s*(import\s*[\w{*'"]|export\s)/m.test(source) ? 'main.mjs' : 'main.js');
  fs.writeFileSync(main, source);
  process.argv = [process.argv[0], main, ...args];
  delete globalThis.require;
  // As the main module, and out of this function's promise: an error is an uncaught one.
  setImmediate(() => modules.runMain(main));
}
let cells = 0;
async function cell({ source }) {
  const value = await new vm.Script(source, { filename: '<cell ' + ++cells + '>' }).runInThisContext();
  return value === undefined ? { ending: 'ok' } : { ending: 'ok', value: util.inspect(value) };
}
async function call({ name, args }) {
  const [first, ...rest] = name.split('.');
  let target;
  try {
    target = vm.runInThisContext(first);
  } catch {
    return { ending: 'error', error: "ReferenceError: the program defines no '" + first + "'" };
  }
  let self;
  for (const part of rest) {
    self = /^class\b/.test(Function.prototype.toString.call(target)) ? new target() : target;
    target = self[part];
  }
  const value = stringify(await target.apply(self, args));
  return value === undefined ? { ending: 'error', error: 'TypeError: the result is not JSON' } : { ending: 'ok', value };
}
reply({ ready: true });
for (let next = request(); next !== undefined; next = request()) {
  if (next.op === 'run') return run(next);
  let answer;
  try {
    answer = await (next.op === 'exec' ? cell(next) : call(next));
  } catch (error) {
    answer = failed(error);
  }
  for (const descriptor of [1, 2]) {
    try {
      put(descriptor, Buffer.from(next.mark));
    } catch (error) {
      if (error.syscall === undefined) throw error; // the system refuses: the program has closed it
    }
  }
  reply(answer);
}
process.exit();
})();
`;
