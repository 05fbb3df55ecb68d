import { messageOf } from '../../episode/failure.ts';
import { openSandbox } from '../../sandbox/sandbox.ts';
import type { SandboxOptions } from '../../sandbox/settings.ts';
import type { Finding } from './finding.ts';

/** Runs a program of each language. Only policies that write programs need it, so that it never fails. */
export async function checkSandbox(options: SandboxOptions = {}): Promise<Finding[]> {
  const sandbox = openSandbox({ warm: 0, timeoutMs: 30_000, ...options });
  const programs = { python: 'print(6 * 7)', javascript: 'console.log(6 * 7)' } as const;
  try {
    const findings: Finding[] = [];
    for (const language of ['python', 'javascript'] as const) {
      findings.push({ what: `sandbox, ${language}`, ...(await tried(language, programs[language])) });
    }
    return findings;
  } finally {
    await sandbox.close();
  }

  async function tried(language: 'python' | 'javascript', source: string): Promise<Omit<Finding, 'what'>> {
    try {
      const { ending, stdout, durationMs } = await sandbox.run({ language, source });
      if (stdout === '42\n') return { state: 'ok', found: `runs programs in ${durationMs.toFixed(0)} ms` };
      return { state: 'warning', found: `a program ended with ${ending}`, remedy: 'see docs/code.md' };
    } catch (error) {
      const remedy = 'only policies that write programs need it; see docs/code.md';
      return { state: 'warning', found: messageOf(error), remedy };
    }
  }
}
