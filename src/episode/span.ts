/** What tracing records of a piece of work. Undefined values are left out. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** A timed piece of work in a trace. Implementations pass it down; who works in it knows no tracing library. */
export interface Span {
  /** Runs `work` inside a child span, which ends when that settles; what it rejects with is the span's error. */
  within<T>(name: string, attributes: SpanAttributes, work: (span: Span) => Promise<T>): Promise<T>;
  set(attributes: SpanAttributes): void;
  /** Marks the work as failed although it did not throw. */
  fail(type: string, message: string): void;
}

/** Where traces begin. */
export type Tracing = Pick<Span, 'within'>;
