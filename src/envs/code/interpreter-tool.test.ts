import { afterAll, describe, expect, it } from 'vitest';
import { NO_SANDBOX } from '../../../tests/support/sandbox.ts';
import type { Executor } from '../../agents/contracts.ts';
import { toolAgent } from '../../agents/tools/tool-agent.ts';
import { testContext } from '../../testing/executor-context.ts';
import { interpreterTool } from './interpreter-tool.ts';

const agents: Executor[] = [];
afterAll(() => Promise.all(agents.map(agent => agent.close?.())));

const limits = { maxNewTokens: 512, callTimeoutMs: 20_000 };
const params = { maxTokens: 512 };
const task = { id: 't', prompt: 'p', label: '', metadata: {} };
const cell = (code: string) => `<tool_call>${JSON.stringify({ name: 'python', arguments: { code } })}</tool_call>`;

/** What the tool answered to each cell of one episode. */
async function told(cells: readonly string[], options = {}): Promise<(readonly [string, boolean])[]> {
  const tool = interpreterTool({ language: 'python', ...options });
  let seen: readonly (readonly [string, boolean])[] = [];
  const agent = toolAgent({
    tools: [tool],
    dialect: 'hermes',
    reward: ([input]) => {
      seen = input!.calls!.map(({ content, failed }) => [content, failed] as const);
      return [1];
    },
  });
  agents.push(agent);
  const answers = [...cells.map(cell), 'done'];
  const episode = await agent.run(task, testContext({ answers: (_, index) => answers[index]!, limits, params }));
  expect(episode.outcome).toEqual({ kind: 'done' });
  return [...seen];
}

describe.skipIf(NO_SANDBOX)('interpreterTool', () => {
  it('keeps the state of an episode from call to call', async () => {
    expect(await told(['x = 20\nprint("set")', 'x + 1', 'x = None'])).toEqual([
      ['set', false],
      ['21', false],
      ['(no output)', false],
    ]);
  });

  it('tells what went wrong, and begins anew after a limit', async () => {
    const [first, stopped, after] = await told(['x = 1; 1 / 0', 'while True: pass', 'x'], {
      sandbox: { timeoutMs: 2000 },
    });
    expect(first).toEqual([expect.stringMatching(/ZeroDivisionError: division by zero$/), true]);
    expect(stopped).toEqual([
      expect.stringMatching(/^timeout\nThe session has ended; the next call begins a new one/),
      true,
    ]);
    expect(after).toEqual([expect.stringMatching(/NameError: name 'x' is not defined$/), true]);
  });

  it('gives each episode a session of its own, also when one is given back', async () => {
    const tool = interpreterTool({ language: 'python', max: 1, warm: 1 });
    const contents: string[] = [];
    const agent = toolAgent({
      tools: [tool],
      dialect: 'hermes',
      reward: ([input]) => {
        contents.push(input!.calls!.map(({ content }) => content).join());
        return [1];
      },
    });
    agents.push(agent);
    const answers = [
      cell('globals().setdefault("x", 0); x += 1; open("f", "a").write("."); [x, open("f").read()]'),
      'done',
    ];
    await Promise.all(
      [1, 2].map(sample =>
        agent.run(task, testContext({ answers: (_, index) => answers[index]!, limits, params, sample })),
      ),
    );
    expect(contents).toEqual(["[1, '.']", "[1, '.']"]);
  });
});
