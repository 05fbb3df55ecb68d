import { provideModules } from '../modules/load.ts';
import { runRewardThread } from '../rewards/file/thread.ts';
import { OWN_PACKAGE } from './own-package.ts';

/** Entry of the thread of a reward file, which may import this package by its names. */

provideModules(OWN_PACKAGE);
await runRewardThread();
