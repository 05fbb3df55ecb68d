import type { TestCase, Verdict } from '../../sandbox/judge.ts';

const MOST = 1000;

/** What the policy is told of a test that its program failed. */
export function describeFailure(test: TestCase, verdict: Verdict, place: string): string {
  const how = verdict.error === undefined ? undefined : `${ENDED[verdict.ending] ?? 'failed'}:\n${end(verdict.error)}`;
  if ('call' in test) {
    const call = `${test.call}(${test.args.map(each => JSON.stringify(each)).join(', ')})`;
    if (how !== undefined) return `Test ${place} failed: ${beginning(call)} ${how}`;
    return `Test ${place} failed: ${beginning(call)} returned ${beginning(verdict.got ?? 'nothing')}, expected ${beginning(JSON.stringify(test.returns))}.`;
  }
  const given = `Test ${place} failed. Input:\n${beginning(test.stdin)}\nExpected output:\n${beginning(test.stdout)}`;
  return how === undefined ? `${given}\nOutput:\n${beginning(verdict.got ?? '')}` : `${given}\nThe program ${how}`;
}

/** The same in few characters, for models that read characters: `f(1,2)=3`, or the input and the output wanted. */
export function shortFailure(test: TestCase): string {
  if (!('call' in test)) return `${test.stdin.trimEnd()}=${test.stdout.trimEnd()}`;
  return `${test.call}(${JSON.stringify(test.args).slice(1, -1)})=${JSON.stringify(test.returns)}`;
}

const ENDED: Partial<Record<Verdict['ending'], string>> = {
  timeout: 'did not end in time',
  memory: 'needed more memory than it may have',
  output: 'wrote too much',
  killed: 'crashed',
};

function beginning(text: string): string {
  return text.length <= MOST ? text : `${text.slice(0, MOST)} [... ${text.length - MOST} characters cut]`;
}

/** Of a traceback the end says what happened. */
function end(text: string): string {
  return text.length <= MOST
    ? text.trimEnd()
    : `[${text.length - MOST} characters cut ...] ${text.slice(-MOST).trimEnd()}`;
}
