import { isObject, listed, parseJson, splitReasoning, type ToolDialect } from './dialect.ts';
import { endOfJson } from './json-values.ts';

/**
 * ReAct (Yao et al., 2023): `Action: TOOL` and `Action Input: {…}` on lines of their own; the result comes back as
 * `Observation: …` in the user's turn. Text behind `Final Answer:` is the answer. For checkpoints whose template knows
 * no tools.
 */
export const react: ToolDialect = {
  name: 'react',
  parse(answer) {
    const { reasoning, rest } = splitReasoning(answer);
    const text = rest.split(/^Observation:/m)[0]!;
    const action = /^[ \t]*Action:[ \t]*(.*)$/m.exec(text);
    const final = /^[ \t]*Final Answer:[ \t]*/m.exec(text);
    if (action === null || (final !== null && final.index < action.index)) {
      const content = final === null ? text : text.slice(final.index + final[0].length);
      return { content: content.trim(), reasoning, calls: [], written: '' };
    }
    const content = text.slice(0, action.index).trim();
    const written = text.slice(action.index).trim();
    const name = action[1]!.trim();
    if (name === '')
      return { content, reasoning, calls: [{ kind: 'malformed', error: '"Action:" names no tool' }], written };
    const after = text.slice(action.index + action[0].length);
    const input = /^[ \t]*Action Input:[ \t]*/m.exec(after);
    if (input === null) {
      return { content, reasoning, calls: [{ kind: 'malformed', name, error: '"Action Input:" is missing' }], written };
    }
    return { content, reasoning, calls: [read(name, after.slice(input.index + input[0].length).trim())], written };
  },
  instructions: tools =>
    `You can call these tools, each described by one line of JSON:\n${listed(tools)}\n` +
    'To call one, write two lines and stop:\nAction: <tool>\nAction Input: {<arguments as JSON>}\n' +
    'The result follows as "Observation: …". When you are done, write "Final Answer: …".',
  result: ({ content }) => ({ role: 'user', content: `Observation: ${content}` }),
  stopStrings: ['\nObservation:'],
  marks: [],
};

function read(name: string, input: string) {
  const parsed = parseJson(input.startsWith('{') ? input.slice(0, endOfJson(input, 0)) : input);
  if ('error' in parsed) {
    return { kind: 'malformed', name, error: `"Action Input:" is not valid JSON: ${parsed.error}` } as const;
  }
  if (!isObject(parsed.value))
    return { kind: 'malformed', name, error: '"Action Input:" must be a JSON object' } as const;
  return { kind: 'call', name, arguments: parsed.value } as const;
}
