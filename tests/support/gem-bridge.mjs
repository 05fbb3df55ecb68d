/**
 * Answers as python/gem_bridge.py does, without Python: `node gem-bridge.mjs <mode>`. Its environment says what it was
 * told; actions die, hang, odd, text and order do what no bridge should.
 */
import { createInterface } from 'node:readline';

const [mode = ''] = process.argv.slice(2);
process.stderr.write('the bridge of the test\n');
const sessions = new Map();
const say = (id, ok) => process.stdout.write(`${JSON.stringify({ id, ok })}\n`);
const refuse = (id, error) => process.stdout.write(`${JSON.stringify({ id, error })}\n`);

for await (const line of createInterface({ input: process.stdin })) {
  const { id, op, session, env, seed, action } = JSON.parse(line);
  if (op === 'hello') {
    if (mode === 'no-gem') refuse(id, "ModuleNotFoundError: No module named 'gem'");
    else say(id, { gem: 'test' });
  } else if (op === 'make') {
    if (env === 'game:Test') say(id, void sessions.set(session, 0) ?? {});
    else refuse(id, `ValueError: Environment ${env} not found in registry.`);
  } else if (op === 'reset') say(id, { observation: `seed ${seed}`, prefix: '', suffix: 'go on' });
  else if (op === 'close') say(id, { closed: sessions.delete(session) });
  else if (action === 'die') process.exit(5);
  else if (action === 'odd') say(id, { observation: 'x' });
  else if (action === 'text') process.stdout.write('hello\n');
  else if (action === 'order') say(id + 1, {});
  else if (action !== 'hang') {
    sessions.set(session, sessions.get(session) + 1);
    const truncated = sessions.get(session) >= 3;
    say(id, { observation: action, prefix: '', suffix: '', reward: 1, terminated: false, truncated });
  }
}
