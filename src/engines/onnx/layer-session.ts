import type { Node } from '../../nn/graph.ts';
import { emit } from '../../nn/onnx.ts';
import { Session, type SessionOptions, type TensorData } from './session.ts';

const FIRST = 'layers.0.';

/**
 * A graph of the weights of layer 0, run for every layer in turn: layers have the same shapes, and what one run needs
 * is given back before the next.
 */
export class LayerSession {
  readonly #session: Session;
  readonly #layers: number;

  static async create(outputs: Readonly<Record<string, Node>>, layers: number, options: SessionOptions) {
    return new LayerSession(await Session.create(emit(outputs), options), layers);
  }

  private constructor(session: Session, layers: number) {
    this.#session = session;
    this.#layers = layers;
  }

  /**
   * Outputs of all layers, each under the name of its layer.
   * @param input values of an input, by the name it has in its layer
   */
  async run(input: (name: string) => TensorData): Promise<Record<string, TensorData>> {
    const results: Record<string, TensorData> = {};
    for (let layer = 0; layer < this.#layers; layer++) {
      const own = (name: string) => name.replace(FIRST, `layers.${layer}.`);
      const feeds = Object.fromEntries(this.#session.model.inputs.map(({ name }) => [name, input(own(name))]));
      for (const [name, values] of Object.entries(await this.#session.run(feeds))) results[own(name)] = values;
    }
    return results;
  }

  release(): Promise<void> {
    return this.#session.release();
  }
}
