import { runRewardThread } from './thread.ts';

/** Entry of the thread of a reward file. */
await runRewardThread();
