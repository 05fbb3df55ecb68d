import { toolAgent } from 'tokenloop';
import { interpreterTool, openSandbox } from 'tokenloop/envs';
import { codeReward } from 'tokenloop/rewards';

/** Single-turn: the answer is a program, tested on the column `tests` of its task. */
export const reward = codeReward({ language: 'python', credit: 'share', sandbox: { timeoutMs: 2000, memoryMiB: 512 } });

/** A tool agent with a Python session of its own, 32 at once at most, 8 of them started ahead. */
export const agent = toolAgent({
  tools: [interpreterTool({ language: 'python', max: 32, warm: 8 })],
  reward: batch => batch.map(({ text, label }) => (text.trim() === label ? 1 : 0)),
});

/** The sandbox by itself. */
export async function main(): Promise<void> {
  const sandbox = openSandbox();
  const { ending, stdout } = await sandbox.run({ language: 'javascript', source: 'console.log(6 * 7)' });
  console.log(ending, stdout); // ok 42
  const session = await sandbox.start('python');
  await session.exec('x = 20');
  const { value } = await session.exec('x + 1');
  console.log(value); // 21
  await sandbox.close();
}
