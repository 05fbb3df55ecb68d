import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostOptions, TINY_VOCABULARY, tinyModel } from '../../../tests/support/engines.ts';
import type { Check } from '../../testing/check.ts';
import { learnerSuite } from '../../testing/learner-suite.ts';
import { samplerSuite } from '../../testing/sampler-suite.ts';
import { DEVICES, type Device, deviceRefusal } from './device.ts';
import { OnnxEngine } from './engine.ts';

describe('what is said about a device that cannot be used', () => {
  it.each([
    ['cuda', 'OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library', /CUDA library.*cuda12/],
    ['cuda', 'CUDA failure 100: no CUDA-capable device is detected', /no GPU was found that CUDA can use.*nvidia-smi/],
    ['webgpu', 'Failed to get a WebGPU adapter: No supported adapters', /no GPU was found that WebGPU can use/],
    ['webgpu', 'no available backend found. ERR: [webgpu] backend not found.', /has no webgpu provider.*doctor/],
  ] as const)('%s: %s', (device, said, message) => {
    const refusal = deviceRefusal(device, said);
    expect(refusal).toMatch(message);
    expect(refusal).toMatch(new RegExp(`^engine.device ${device}: .*, or take engine.device cpu$`));
  });

  it('leaves words about something else alone', () => {
    expect(deviceRefusal('webgpu', 'ShapeInferenceError')).toBeUndefined();
    expect(deviceRefusal('cpu', 'Failed to load shared library')).toBeUndefined();
  });
});

/** The npm package never holds the CUDA library, which is fetched apart. */
it('an engine starts on cuda or says what is missing', async () => {
  const root = mkdtempSync(join(tmpdir(), 'tokenloop-device-'));
  try {
    const refusal = await startOn('cuda', tinyModel(root)).then(engine => engine.close(), String);
    if (refusal !== undefined) expect(refusal).toMatch(/^Error: engine\.device cuda: .*, or take engine\.device cpu$/);
  } finally {
    rmSync(root, { recursive: true });
  }
});

function startOn(device: Device, directory: string): Promise<OnnxEngine> {
  const options = hostOptions(directory, { initSeed: 3, sampler: { device }, learner: { device } });
  return OnnxEngine.start(options);
}

/** The conformance suites on another device than the CPU: `ENGINE_DEVICE=webgpu npx vitest run …/device.test.ts` */
describe.each(DEVICES.filter(device => device !== 'cpu'))('on %s', device => {
  const asked = process.env.ENGINE_DEVICE === device;
  let root: string;
  let engine: OnnxEngine;
  let initial: string;
  beforeAll(async () => {
    if (!asked) return;
    root = mkdtempSync(join(tmpdir(), 'tokenloop-device-'));
    engine = await startOn(device, tinyModel(root));
    initial = join(root, 'initial');
    await engine.save(initial);
  });
  afterAll(async () => {
    if (!asked) return;
    await engine.close();
    rmSync(root, { recursive: true });
  });

  const restored = async () => {
    await engine.load(initial);
    return engine;
  };
  const register = (checks: readonly Check[]) => {
    for (const { name, run, skip } of checks) {
      const reason = skip ?? (asked ? undefined : `set ENGINE_DEVICE=${device} on a machine that has one`);
      it.skipIf(reason !== undefined)(reason ? `${name}: ${reason}` : name, run, 60_000);
    }
  };
  register(
    samplerSuite({
      make: async () => ({ sampler: await restored(), learner: engine }),
      vocabularySize: TINY_VOCABULARY,
    }),
  );
  register(
    learnerSuite({
      make: restored,
      vocabularySize: TINY_VOCABULARY,
      open: directory => startOn(device, directory),
      gradient: learner => (learner as OnnxEngine).gradient(),
    }),
  );
});
