/** An answer of the server that is an error: what a client did, or that it must wait. */
export class Refusal extends Error {
  /** HTTP status. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
