/** A failure of a tracker that says itself what is lost (a clause: `the metrics of steps 3 to 5 are lost`). */
export class TrackerError extends Error {
  override readonly name = 'TrackerError';
  readonly lost: string;

  constructor(message: string, lost: string, options?: ErrorOptions) {
    super(message, options);
    this.lost = lost;
  }
}
