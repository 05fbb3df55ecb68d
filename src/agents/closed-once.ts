import type { Executor } from './contracts.ts';

/** The agent, closed by the first who closes it: whoever made it may close it again, whether it was used or not. */
export function closedOnce(agent: Executor): Executor {
  const { summarize, close } = agent;
  let closing: Promise<void> | undefined;
  return {
    name: agent.name,
    ...(agent.single && { single: agent.single }),
    ...(summarize && { summarize: (groups, signal) => summarize.call(agent, groups, signal) }),
    ...(close && {
      close: () => {
        closing ??= close.call(agent);
        return closing;
      },
    }),
    run: (task, context) => agent.run(task, context),
  };
}
