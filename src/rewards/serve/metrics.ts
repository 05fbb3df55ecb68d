/** Upper bounds of the classes that requests are counted in, by the seconds they took. */
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** How long requests took. */
export class Latencies {
  readonly #counts = BOUNDS.map(() => 0);
  #count = 0;
  #seconds = 0;

  add(seconds: number): void {
    this.#count += 1;
    this.#seconds += seconds;
    for (const [i, bound] of BOUNDS.entries()) if (seconds <= bound) this.#counts[i]! += 1;
  }

  /** In the text format of Prometheus. */
  lines(name: string): string[] {
    return [
      `# TYPE ${name} histogram`,
      ...BOUNDS.map((bound, i) => `${name}_bucket{le="${bound}"} ${this.#counts[i]}`),
      `${name}_bucket{le="+Inf"} ${this.#count}`,
      `${name}_sum ${this.#seconds}`,
      `${name}_count ${this.#count}`,
    ];
  }
}

export interface Counts {
  readonly batches: number;
  readonly items: number;
  readonly waiting: number;
  readonly refused: number;
  readonly failed: number;
  readonly latencies: Latencies;
}

/** The page that Prometheus reads. */
export function metricsPage({ batches, items, waiting, refused, failed, latencies }: Counts): string {
  const counter = (name: string, value: number) => [
    `# TYPE tokenloop_rm_${name} counter`,
    `tokenloop_rm_${name} ${value}`,
  ];
  return `${[
    ...counter('batches_total', batches),
    ...counter('texts_total', items),
    ...counter('refused_requests_total', refused),
    ...counter('failed_requests_total', failed),
    '# TYPE tokenloop_rm_waiting_texts gauge',
    `tokenloop_rm_waiting_texts ${waiting}`,
    ...latencies.lines('tokenloop_rm_request_seconds'),
  ].join('\n')}\n`;
}
