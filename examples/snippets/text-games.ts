import { multiTurn } from 'tokenloop';
import { makeEnvironment } from 'tokenloop/envs';

const environment = makeEnvironment('game:Minesweeper-v0-easy', { rules: 'fixed', turns: 30 });
export const agent = multiTurn(environment, { maxTurns: 30 });
