import { messageOf } from '../../episode/failure.ts';
import type { Finding } from './finding.ts';

/** Whether the runtime of the embedded engine loads, what it offers here, and whether it computes rightly. */
export async function checkRuntime(): Promise<Finding[]> {
  const what = 'onnxruntime-node';
  try {
    const runtime = await import('onnxruntime-node');
    const bundled = runtime.listSupportedBackends().filter(({ bundled }) => bundled);
    const found = `${runtime.env.versions.node}, providers: ${bundled.map(({ name }) => name).join(', ')}`;
    return [{ what, state: 'ok', found }, await checkSession()];
  } catch (error) {
    const remedy = 'install it again without its CUDA download: ONNXRUNTIME_NODE_INSTALL=skip npm install';
    return [{ what, state: 'failed', found: messageOf(error), remedy }];
  }
}

/** Multiplies [1 2] by its own transpose: 5. */
async function checkSession(): Promise<Finding> {
  const what = 'engine';
  const remedy = 'open an issue with this report; the runtime loads here and still cannot compute';
  try {
    const [{ Session }, { emit }, { input }, { matmul }] = await Promise.all([
      import('../../engines/onnx/session.ts'),
      import('../../nn/onnx.ts'),
      import('../../nn/graph.ts'),
      import('../../nn/ops.ts'),
    ]);
    const product = matmul(input('row', [1, 2]), input('column', [2, 1]));
    const session = await Session.create(emit({ product }, { name: 'doctor' }), { threads: 1 });
    const pair = Float32Array.of(1, 2);
    const { product: result } = await session.run({ row: pair, column: pair.slice() });
    await session.release();
    if (result?.[0] === 5) return { what, state: 'ok', found: 'a model was built and run' };
    return { what, state: 'failed', found: `1·1 + 2·2 gave ${result?.[0]} instead of 5`, remedy };
  } catch (error) {
    return { what, state: 'failed', found: messageOf(error), remedy };
  }
}
