import type { Finding } from './checks/finding.ts';
import { checkMachine } from './checks/machine.ts';
import { checkRuntime } from './checks/runtime.ts';
import { checkSandbox } from './checks/sandbox.ts';
import { defineCommand } from './command.ts';
import { table } from './table.ts';

export const command = defineCommand({
  name: 'doctor',
  options: {},
  details:
    'Looks at Node, the machine, the runtime of the embedded engine, the sandbox for programs and the directory of the runs.',
  async run({ cwd, stdout }) {
    const findings = [...(await checkMachine(cwd)), ...(await checkRuntime()), ...(await checkSandbox())];
    stdout.write(`${report(findings)}\n`);
    return findings.some(({ state }) => state === 'failed') ? 1 : 0;
  },
});

export function report(findings: readonly Finding[]): string {
  const remedies = findings.flatMap(({ what, remedy }) => (remedy ? [`${what}: ${remedy}`] : []));
  const rows = findings.map(({ what, state, found }) => [what, state, found]);
  const verdict = findings.some(({ state }) => state === 'failed')
    ? 'This machine cannot train yet.'
    : 'Ready to train.';
  return [table([['', 'state', 'found'], ...rows]), ...remedies, verdict].join('\n\n');
}
