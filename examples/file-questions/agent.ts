import { multiTurn } from 'tokenloop';
import { type Environment, mcpTools, type ToolResult } from 'tokenloop/envs';

/**
 * Questions about local files, answered with a tool of an MCP server:
 *
 *   user       12-34       how many parts are in box 34 of shelf 12?
 *   assistant  c12-34      reads the file 12-34.txt through the server
 *   tool       507         what stands there; `e` when the server refuses
 *   assistant  a507        an answer ends the episode: reward 1 if it is right
 *
 * The server is the one that the MCP project publishes. It sees the directory files/ and nothing else, and is shared by
 * all episodes.
 */
const [read] = await mcpTools({
  files: {
    command: process.execPath,
    args: ['node_modules/@modelcontextprotocol/server-filesystem/dist/index.js', 'examples/file-questions/files'],
    tools: ['read_text_file'],
  },
});
const { pool, execute } = read!;

/** One episode; answers that are neither call nor answer are told `e`, too. */
function fileQuestions(): Environment {
  const episode = crypto.randomUUID();
  const call = async (name: string, context: Pick<Parameters<typeof execute>[1], 'task' | 'signal'>) => {
    const resource = await pool!.acquire(episode, context.signal);
    // Relative paths begin in the directory that the server is given.
    return (await execute({ path: `${name}.txt` }, { ...context, episode, seed: 0, resource })) as ToolResult;
  };
  return {
    // Rendered as messages already (data.apply_chat_template).
    reset: ({ prompt }) => ({ observation: prompt }),
    async step({ actionText, label, task, signal }) {
      const [kind, rest] = [actionText[0], actionText.slice(1)];
      if (kind === 'a') return { reward: rest === label ? 1 : 0, done: true, metrics: { read: 0 } };
      const result = kind === 'c' ? await call(rest, { task, signal }) : undefined;
      const failed = result?.failed ?? true;
      return {
        reward: 0,
        done: false,
        feedback: [{ role: 'tool', content: failed ? 'e' : result!.content.trim() }],
        isVoid: kind !== 'c',
        toolFailed: kind === 'c' && failed,
        metrics: { read: failed ? 0 : 1 },
      };
    },
    close: () => pool!.release(episode),
  };
}

const { run } = multiTurn(fileQuestions);
export default { name: 'file-questions', run, close: () => pool!.close() };
