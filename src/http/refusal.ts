/** An answer of a server that is an error: what a client did, or that it must wait. */
export class Refusal extends Error {
  /** HTTP status. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    message: string,
    options: ErrorOptions & { readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(message, options);
    this.status = status;
    this.headers = options.headers ?? {};
  }
}
