import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evaluate, formatNumber } from './arithmetic.ts';

describe('evaluate', () => {
  it.each([
    ['48/2', 24],
    ['1+2*3', 7],
    ['(1+2)*3', 9],
    ['10-4-3', 3],
    ['16/4/2', 2],
    ['-3*-2', 6],
    ['2--1', 3],
    ['.5*10', 5],
    ['5.*2', 10],
    [' 1 + 1 ', 2],
    ['0.2*50', 10],
  ])('%s is %d', (expression, value) => {
    expect(evaluate(expression)).toBe(value);
  });

  it.each([
    ['', /"" is not arithmetic: unexpected its end/],
    ['1+', /unexpected its end/],
    ['1 2', /unexpected "2"/],
    ['(1', /unexpected its end/],
    ['1)', /unexpected "\)"/],
    ['1..2', /unexpected/],
    ['.', /unexpected "\."/],
    ['2**3', /unexpected "\*"/],
    ['1e3', /unexpected "e"/],
    ['0x10', /unexpected "x"/],
    ['process.exit()', /unexpected "p"/],
    ['1/0', /division by zero in "1\/0"/],
    ['1/(2-2)', /division by zero/],
    ['('.repeat(65), /65 characters; at most 64/],
  ])('refuses %j', (expression, message) => {
    expect(() => evaluate(expression)).toThrow(message);
  });

  it('agrees with JavaScript on any expression', () => {
    // JavaScript goes on after a division by 0, so there is none: what divides is a number other than 0 or a positive sum.
    const sum = fc.constantFrom('1', '0.5', '12').map(number => `(${number} * ${number} + 7)`);
    const { expression } = fc.letrec<Record<'expression' | 'number' | 'pair' | 'quotient', string>>(tie => ({
      expression: fc.oneof({ depthSize: 'small', withCrossShrink: true }, tie('number'), tie('pair'), tie('quotient')),
      number: fc.oneof(fc.nat({ max: 99 }).map(String), fc.constantFrom('0.5', '2.25', '-3')),
      quotient: fc
        .tuple(
          tie('expression'),
          fc.oneof(
            tie('number').filter(text => text !== '0'),
            sum,
          ),
        )
        .map(([a, b]) => `${a} / ${b}`),
      pair: fc
        .tuple(tie('expression'), fc.constantFrom('+', '-', '*'), tie('expression'), fc.boolean())
        .map(([a, sign, b, group]) => (group ? `(${a} ${sign} ${b})` : `${a} ${sign} ${b}`)),
    }));
    fc.assert(
      fc.property(expression, text => {
        fc.pre(text.length <= 64);
        const expected = new Function(`return ${text}`)() as number;
        expect(evaluate(text)).toBe(expected);
      }),
    );
  });
});

describe('formatNumber', () => {
  it.each([
    [24, '24'],
    [0.5, '0.5'],
    [0.1 + 0.2, '0.3'],
    [100, '100'],
    [-7.25, '-7.25'],
    [1 / 3, '0.333333'],
    [-1e-9, '0'],
    [0, '0'],
    [999_999_999_999, '999999999999'],
  ])('%d is written %s', (value, text) => {
    expect(formatNumber(value)).toBe(text);
  });

  it('rounds to fewer decimals when asked', () => {
    expect([formatNumber(2.346, 2), formatNumber(100, 0)]).toEqual(['2.35', '100']);
  });

  it.each([1e12, -1e12, Number.POSITIVE_INFINITY, Number.NaN])('refuses %d', value => {
    expect(() => formatNumber(value)).toThrow(`${value} is too large for the calculator`);
  });
});
