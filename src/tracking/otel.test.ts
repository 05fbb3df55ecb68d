import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { otelTracing } from './otel.ts';

const exporter = new InMemorySpanExporter();
beforeEach(() => {
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
});
afterEach(() => {
  trace.disable();
  exporter.reset();
});
const spans = () => exporter.getFinishedSpans();

describe('otelTracing', () => {
  it('gives spans to the SDK, children to their parent, whatever runs in between', async () => {
    const tracing = await otelTracing();
    const episode = (name: string) =>
      tracing.within(name, { 'tokenloop.sample': 1 }, async span => {
        await span.within(`${name} generate`, {}, async () => undefined);
        await Promise.resolve();
        span.set({ 'tokenloop.reward': 1, reasons: ['stop'] });
        return name;
      });
    expect(await Promise.all([episode('a'), episode('b')])).toEqual(['a', 'b']);
    for (const name of ['a', 'b']) {
      const parent = spans().find(span => span.name === name)!;
      const child = spans().find(span => span.name === `${name} generate`)!;
      expect(child.parentSpanContext?.spanId).toBe(parent.spanContext().spanId);
      expect(child.spanContext().traceId).toBe(parent.spanContext().traceId);
      expect(parent.attributes).toEqual({ 'tokenloop.sample': 1, 'tokenloop.reward': 1, reasons: ['stop'] });
      expect([parent.kind, parent.status.code]).toEqual([SpanKind.INTERNAL, SpanStatusCode.UNSET]);
    }
    expect(new Set(spans().map(span => span.spanContext().traceId)).size).toBe(2);
  });

  it('marks what fails, thrown or told, and passes the error on', async () => {
    const tracing = await otelTracing();
    await expect(tracing.within('thrown', {}, () => Promise.reject(new TypeError('no')))).rejects.toThrow('no');
    await tracing.within('told', {}, async span => span.fail('environment', 'closed'));
    expect(spans().map(({ name, status, attributes }) => [name, status, attributes])).toEqual([
      ['thrown', { code: SpanStatusCode.ERROR, message: 'no' }, { 'error.type': 'TypeError' }],
      ['told', { code: SpanStatusCode.ERROR, message: 'closed' }, { 'error.type': 'environment' }],
    ]);
  });

  it('works, and costs no span, where no SDK is registered', async () => {
    trace.disable();
    const tracing = await otelTracing();
    expect(await tracing.within('a', {}, span => span.within('b', {}, async () => 5))).toBe(5);
    expect(spans()).toEqual([]);
  });

  it('says what to install', async () => {
    const load = () => Promise.reject(new Error("Cannot find package '@opentelemetry/api'"));
    await expect(otelTracing(load)).rejects.toThrow(/npm install @opentelemetry\/api/);
  });
});
