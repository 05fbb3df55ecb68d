import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/**
 * A program of tools/peers in a process of its own, run by the Python that PEERS_PYTHON names: one JSON line in, one
 * out, in turns.
 */
export class Peer {
  readonly #script: string;
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  readonly #exit: Promise<unknown>;

  constructor(script: string, args: readonly (string | number)[]) {
    this.#script = script;
    const file = fileURLToPath(new URL(`../tools/peers/${script}`, import.meta.url));
    const python = process.env.PEERS_PYTHON ?? 'python3';
    const env = { ...process.env, TQDM_DISABLE: '1', PYTHONWARNINGS: 'ignore', TRANSFORMERS_VERBOSITY: 'error' };
    this.#process = spawn(python, [file, ...args.map(String)], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#exit = once(this.#process, 'exit');
    this.#answers = createInterface({ input: this.#process.stdout! })[Symbol.asyncIterator]();
  }

  async ask<Answer>(request: object): Promise<Answer> {
    this.#process.stdin!.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    if (done !== true) return JSON.parse(value) as Answer;
    throw new Error(`${this.#script} ended; set PEERS_PYTHON to a Python that has what the script imports`);
  }

  async close(): Promise<void> {
    this.#process.stdin!.end();
    await this.#exit;
  }
}
