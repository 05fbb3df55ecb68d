import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

/**
 * An environment as NeMo Gym's resources servers are, in the style of Gymnasium, in one file without dependencies: guess
 * a number from 1 to 8 in three guesses. The number is `verifier_metadata.secret` of the dataset row; a session is a
 * cookie.
 */

const GUESSES = 3;

/** Starts the server; port 0 is any free one. */
export async function serve(port) {
  /** Guesses made, by session. */
  const sessions = new Map();
  const routes = {
    '/reset'(session) {
      sessions.set(session, 0);
      return { observation: null, info: {} };
    },
    '/step'(session, { response, verifier_metadata: { secret } }) {
      const guesses = sessions.get(session) + 1;
      sessions.set(session, guesses);
      const said = textOf(response);
      const guess = /^\d{1,7}$/.test(said) ? Number(said) : Number.NaN;
      const isOver = guess === secret || guesses >= GUESSES;
      if (isOver) sessions.delete(session);
      const hint = Number.isNaN(guess) ? '?' : secret < guess ? '<' : '>';
      return {
        observation: isOver ? null : hint,
        reward: guess === secret ? 1 : 0,
        terminated: isOver,
        truncated: false,
        info: {},
      };
    },
    '/aggregate_metrics'(_, { verify_responses: all }) {
      const won = all.filter(({ reward }) => reward === 1).length / all.length;
      return { group_level_metrics: [], agent_metrics: { 'mean/reward': won }, key_metrics: { won } };
    },
  };
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const session = /(?:^|; )guess=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1] ?? randomUUID();
    const answer = (status, body) => {
      response.writeHead(status, { 'content-type': 'application/json', 'set-cookie': `guess=${session}; path=/` });
      response.end(JSON.stringify(body));
    };
    const route = routes[request.url];
    if (route === undefined) return answer(404, { detail: 'Not Found' });
    try {
      answer(200, route(session, JSON.parse(text)));
    } catch (error) {
      answer(500, String(error));
    }
  });
  await new Promise(resolve => server.listen(port, '127.0.0.1', resolve));
  return server;
}

function textOf({ output }) {
  const parts = output.filter(({ type }) => type === 'message').flatMap(({ content }) => content);
  return parts.map(({ text }) => text).join('');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = await serve(Number(process.argv[2] ?? 8765));
  console.log(`guess a number at http://127.0.0.1:${server.address().port}`);
}
