import type { Span as ApiSpan, Attributes, Context, Tracer } from '@opentelemetry/api';
import { messageOf } from '../episode/failure.ts';
import type { Span, SpanAttributes, Tracing } from '../episode/span.ts';

type Api = typeof import('@opentelemetry/api');

/**
 * Traces through OpenTelemetry's API: spans go wherever the SDK that the program has registered sends them, and nowhere
 * without one. Calls made inside a span (an instrumented `fetch` of an environment) become its children.
 * @throws when `@opentelemetry/api` is not installed
 */
export async function otelTracing(load: () => Promise<Api> = () => import('@opentelemetry/api')): Promise<Tracing> {
  const api = await load().catch((cause: Error) => {
    throw new Error(
      `tracing needs the package @opentelemetry/api: npm install @opentelemetry/api, and an SDK that exports (${cause.message})`,
      { cause },
    );
  });
  const tracer = api.trace.getTracer('tokenloop');
  return { within: (...piece) => begin(api, tracer, api.context.active(), ...piece) };
}

/** The parent is given, not looked up: an SDK need not keep track of what is active. */
function begin<T>(
  api: Api,
  tracer: Tracer,
  parent: Context,
  name: string,
  attributes: SpanAttributes,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  return tracer.startActiveSpan(name, { attributes: attributes as Attributes }, parent, async span => {
    const own = api.trace.setSpan(parent, span);
    try {
      return await work({
        within: (...child) => begin(api, tracer, own, ...child),
        set: more => void span.setAttributes(more as Attributes),
        fail: (type, message) => failed(api, span, type, message),
      });
    } catch (error) {
      failed(api, span, error instanceof Error ? error.name : 'error', messageOf(error));
      throw error;
    } finally {
      span.end();
    }
  });
}

function failed(api: Api, span: ApiSpan, type: string, message: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: api.SpanStatusCode.ERROR, message });
}
