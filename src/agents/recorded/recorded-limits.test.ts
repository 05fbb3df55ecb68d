import { describe, expect, it } from 'vitest';
import {
  agents,
  ask,
  type Json,
  type Message,
  renderer,
  run,
  said,
  task,
  tools,
  user,
  written,
} from '../../../tests/support/recorded-run.ts';
import { validateEpisode } from '../../episode/validate.ts';
import { testContext } from '../../testing/executor-context.ts';
import { FidelityReport } from './fidelity.ts';
import { recordedAgent } from './recorded-agent.ts';

describe('limits', () => {
  it('ends an episode truncated when answers are used up', async () => {
    const { episode } = await run(
      async (_, at) => {
        for (let turn = 0; ; turn++) {
          const reply = await ask(at, [user(`q ${turn}`)]);
          if (reply.status !== 200) throw new Error(reply.error.code);
        }
      },
      (_, index) => `line ${index}`,
      {},
      { limits: { maxTurns: 3 } },
    );
    expect(episode.outcome).toEqual({ kind: 'truncated', reason: 'turns' });
    expect(episode.steps).toHaveLength(3);
  });

  it.each([
    [true, { kind: 'truncated', reason: 'tokens' }],
    [false, { kind: 'failed', failure: 'overflow' }],
  ])('refuses a conversation that is too long (after an answer: %s)', async (after, outcome) => {
    const { episode } = await run(
      async (_, at) => {
        if (after) await ask(at, [user('q')]);
        const reply = await ask(at, [user('long '.repeat(200))]);
        expect(reply).toMatchObject({ status: 400, error: { code: 'context_length_exceeded' } });
        throw new Error(reply.error.message);
      },
      ['a'],
      {},
      { limits: { maxTokens: 600 } },
    );
    expect(episode.outcome).toMatchObject(outcome);
  });

  it('stops a program that never ends and keeps what was sampled, unfinished answers too', async () => {
    let later: Promise<Json> | undefined;
    const context = testContext({ renderer, answers: (_, index) => `line ${index}`, gated: true });
    const agent = recordedAgent({
      timeoutMs: 2000,
      run: async (_, at) => {
        const first = ask(at, [user('q')]);
        await context.sampler.arrived(1);
        context.sampler.finish(0);
        const second = ask(at, [user('q'), said(await first), user('r')]);
        await context.sampler.arrived(2);
        context.sampler.advance(1, 3);
        at.signal.addEventListener('abort', () => {
          later = second;
        });
        await new Promise(() => undefined);
      },
    });
    agents.push(agent);
    const episode = await agent.run(task, context);
    validateEpisode(episode, { vocabularySize: renderer.vocabularySize });
    expect(episode.outcome).toMatchObject({ kind: 'failed', failure: 'timeout', step: 2 });
    expect(episode.steps.map(({ finishReason }) => finishReason)).toEqual(['stop', 'abort']);
    expect(renderer.decode(episode.segments.at(-1)!.tokens)).toBe('lin');
    expect(await later).toMatchObject({ status: 409 });
  });
});

describe('what a request demands', () => {
  const schema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] };
  const json = { type: 'json_schema', json_schema: { name: 'a', schema } };
  const named = { type: 'function', function: { name: 'add' } };

  it('is counted where the answer is not as it was asked for', async () => {
    const lines = ['words', written('add', {}), written('sub', {}), '{"a":1}', '{"b":1}', 'words', '{}', '[1]'];
    const { episode } = await run(async (_, at) => {
      const demands: Message[] = [
        { tools, tool_choice: 'required' },
        { tools, tool_choice: 'required' },
        { tools, tool_choice: named },
        { response_format: json },
        { response_format: json },
        { response_format: { type: 'json_object' } },
        { response_format: { type: 'json_object' }, presence_penalty: 1, temperature: 0.2 },
        { response_format: { type: 'text' } },
      ];
      for (const [i, more] of demands.entries())
        expect(await ask(at, [user(`q${i}`)], more)).toMatchObject({ status: 200 });
      return 1;
    }, lines);
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.metrics).toMatchObject({
      recorded_choice_unmet: 2,
      recorded_format_unmet: 2,
      recorded_overridden: 1,
    });
    const report = new FidelityReport();
    report.add([episode]);
    report.addMismatch(2e-5);
    const told = report.describe();
    expect(told).toContain('differ by at most 0.000020 nats');
    expect(told).toContain('2 answers without the call that was required');
    expect(told).toContain('2 answers not in the form that was asked for');
    expect(told).toContain('1 answers sampled as the run does, not as the request says');
  });

  it('is refused where the run is strict, and where there is no such tool', async () => {
    const { episode } = await run(
      async (_, at) => {
        const refused = async (more: Message, message: string) => {
          const { status, error } = await ask(at, [user('q')], more);
          expect([status, error.type, error.message]).toEqual([
            400,
            'invalid_request_error',
            expect.stringContaining(message),
          ]);
        };
        await refused({ tools, tool_choice: 'required' }, 'tool_choice: no request changes');
        await refused({ response_format: json, temperature: 0 }, 'response_format, temperature: no request');
        await refused({ tool_choice: 'required' }, 'requires a call, and there are no tools');
        await refused({ tools, tool_choice: { ...named, function: { name: 'sub' } } }, 'requires the tool "sub"');
        await refused({ response_format: { type: 'yaml' } }, 'response_format');
        expect(await ask(at, [user('q')], { tools, tool_choice: 'auto' })).toMatchObject({ status: 200 });
        return 1;
      },
      ['fine'],
      { strict: true },
    );
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(episode.metrics.turns).toBe(1);
  });
});

describe('an answer that may have calls', () => {
  const pieces = (text: string): string[] =>
    [...text.matchAll(/^data: (\{.*)$/gm)].flatMap(([, data]) => JSON.parse(data!).choices[0]?.delta.content || []);

  it('is streamed until a call begins', async () => {
    const line = `\nI add <them>. ${written('add', { a: 1 })}`;
    let streamed: Json;
    const { episode } = await run(
      async (_, at) => {
        streamed = await ask(at, [user('q')], { tools, stream: true });
        const calls = [{ id: 'c00000000', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }];
        const answer = { role: 'assistant', content: pieces(streamed.text).join(''), tool_calls: calls };
        await ask(at, [user('q'), answer, { role: 'tool', tool_call_id: 'c00000000', content: '3' }], { tools });
        return 1;
      },
      [line, 'done'],
    );
    expect(episode.outcome).toEqual({ kind: 'done' });
    expect(pieces(streamed.text).join('')).toBe('I add <them>.');
    // Bytes are tokens here: all but what might begin a call came by itself.
    expect(pieces(streamed.text).length).toBeGreaterThan(8);
    expect(streamed.text).toContain('"arguments":"{\\"a\\":1}"');
    expect(episode.metrics).toMatchObject({ recorded_replayed: 1, recorded_branches: 0, tool_calls: 1 });
  });

  it('is given whole where a call cannot be read', async () => {
    const { episode } = await run(
      async (_, at) => {
        const { text } = await ask(at, [user('q')], { tools, stream: true });
        expect(pieces(text).join('')).toBe('so <tool_call>{</tool_call> end');
        return 1;
      },
      [' so <tool_call>{</tool_call> end'],
    );
    expect(episode.outcome).toEqual({ kind: 'done' });
  });
});
