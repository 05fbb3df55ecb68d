import { resolve } from 'node:path';
import { ConfigError } from '../config/error.ts';
import { muonFromOptions, muonValues } from '../engines/onnx/muon-options.ts';
import {
  adapterFromOptions,
  type adapterOptions,
  type LoraOptions,
  loraFromOptions,
  type loraOptions,
} from '../engines/onnx/options.ts';
import { messageOf } from '../episode/failure.ts';
import type { HubProgress } from '../nn/checkpoint/hub.ts';
import type { Values } from '../options/option.ts';
import type { ConsoleStream } from '../tracking/console.ts';
import type { trainOptions } from '../training/options.ts';
import type { CommandContext } from './command.ts';

type Surroundings = Pick<CommandContext<Record<never, never>>, 'cwd' | 'stderr' | 'interrupt'>;

/** The directory of the model that an option names, fetched from the hub where it is no directory. */
export async function locateModel(
  source: string,
  revision: string | undefined,
  { cwd, stderr, interrupt }: Surroundings,
): Promise<string> {
  const { modelDirectory } = await import('../nn/checkpoint/source.ts');
  const line = downloadLine(source, stderr);
  try {
    return await modelDirectory(source, { revision, base: cwd, signal: interrupt.signal, onProgress: line.show });
  } finally {
    line.end();
  }
}

/**
 * The adapter that a model is sampled with.
 * @throws ConfigError for flags that do not go together
 */
export function adapterOf(values: Values<typeof adapterOptions>, cwd: string): LoraOptions | undefined {
  return placed(() => adapterFromOptions(values), cwd);
}

/**
 * What the flags say about LoRA.
 * @throws ConfigError for flags that do not go together
 */
export function loraOf(values: Values<typeof loraOptions & SeedOption>, cwd: string): LoraOptions | undefined {
  return placed(() => loraFromOptions(values, values['train.seed']), cwd);
}

function placed(read: () => LoraOptions | undefined, cwd: string): LoraOptions | undefined {
  let lora: LoraOptions | undefined;
  try {
    lora = read();
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
  return lora && 'adapter' in lora ? { ...lora, adapter: resolve(cwd, lora.adapter) } : lora;
}

/**
 * What the flags under `prefix` say about Muon, beside a learning rate of `adamLr`.
 * @throws ConfigError for settings of an optimizer that is not used
 */
export function muonOf(values: Readonly<Record<string, unknown>>, prefix: string, adamLr: number) {
  try {
    return muonFromOptions(muonValues(values, prefix), adamLr, prefix);
  } catch (error) {
    throw new ConfigError([messageOf(error)], { cause: error });
  }
}

type SeedOption = Pick<typeof trainOptions, 'train.seed'>;

const CLEAR_LINE = '\r\u001b[2K';
const INTERVAL_MS = 100;

/** What a download shows: its commit, then one live line on a terminal and one line for each file elsewhere. `now` is in milliseconds. */
export function downloadLine(source: string, stream: ConsoleStream, now: () => number = () => performance.now()) {
  let shown: { readonly file: string; readonly at: number } | undefined;
  const show = ({ commit, file, done, total }: HubProgress) => {
    if (shown === undefined) stream.write(`fetching ${source} at commit ${commit}\n`);
    const isNext = shown?.file !== file;
    const at = now();
    if (!isNext && done < total && (!stream.isTTY || at - shown!.at < INTERVAL_MS)) return;
    if (stream.isTTY) {
      const share = total > 0 ? Math.floor((100 * done) / total) : 100;
      const text = `fetching ${source}: ${share} % of ${size(total)}, ${file}`;
      stream.write(CLEAR_LINE + text.slice(0, Math.max(1, (stream.columns ?? 80) - 1)));
    } else if (isNext) {
      stream.write(`fetching ${file}: ${size(total - done)} left\n`);
    }
    shown = { file, at };
  };
  const end = () => {
    if (shown !== undefined && stream.isTTY) stream.write('\n');
  };
  return { show, end };
}

function size(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`;
  return bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1e3)} kB`;
}
