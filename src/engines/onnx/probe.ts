import { input } from '../../nn/graph.ts';
import { emit } from '../../nn/onnx.ts';
import { add } from '../../nn/ops.ts';
import type { Device } from './device.ts';
import { Session } from './session.ts';

/** Throws, saying what is missing and what to do, where the engine cannot compute on `device`. */
export async function checkDevice(device: Device): Promise<void> {
  const sum = add(input('left', [1]), input('right', [1]));
  const session = await Session.create(emit({ sum }, { name: 'probe' }), { threads: 1, device });
  const { sum: result } = await session.run({ left: Float32Array.of(1), right: Float32Array.of(2) });
  await session.release();
  if (result?.[0] !== 3) throw new Error(`engine.device ${device}: 1 + 2 is ${result?.[0]} there; take another device`);
}
