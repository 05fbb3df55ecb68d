import { request } from './request.ts';
import { baseOf } from './resources-server.ts';
import { instances, parseReply } from './wire.ts';

/**
 * The address of a server by the name of its instance, from NeMo Gym's head server (`http://127.0.0.1:11000` by itself).
 * @throws Error that lists the names there are
 */
export async function serverUrl(head: string, name: string, signal = AbortSignal.timeout(10_000)): Promise<string> {
  const where = `${baseOf(head)}/server_instances`;
  const all = parseReply(instances, await request(where, { method: 'GET', signal, repeatable: true }));
  const found = all.find(one => one.name === name)?.url;
  if (found) return baseOf(found);
  const names = all.flatMap(one => one.name ?? []).join(', ');
  throw new Error(`${where} has no server ${JSON.stringify(name)}; there are: ${names || 'none'}`);
}
