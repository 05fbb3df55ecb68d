import { agentServer, nemoGym, nemoGymAgent, nemoGymTask, readJsonl, resourcesServer } from 'tokenloop';

export const tasks = readJsonl('examples/nemo-gym/train.jsonl', nemoGymTask);
export const agent = nemoGym({ server: resourcesServer('http://127.0.0.1:8765'), style: 'gymnasium' });
export const remote = nemoGymAgent({ agent: agentServer('http://127.0.0.1:8000'), model: { port: 9000 } });
