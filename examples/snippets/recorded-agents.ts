import { type RecordedRun, recordedAgent } from 'tokenloop';

async function once(question: string, { baseURL, apiKey, model, signal }: RecordedRun): Promise<string> {
  const response = await fetch(`${baseURL}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: question }] }),
    signal,
  });
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  return choices[0]?.message.content ?? '';
}

export const agent = recordedAgent({
  run: async (task, episode) => ((await once(String(task.prompt), episode)) === task.label ? 1 : 0),
});
