import { describe, expect, it } from 'vitest';
import { chartSvg, mean, ticks } from '../tools/plot/chart.ts';

describe('mean', () => {
  it('is taken where all runs have a point', () => {
    const runs = [
      [
        { x: 0, y: 0.2 },
        { x: 10, y: 0.4 },
        { x: 20, y: 0.9 },
      ],
      [
        { x: 10, y: 0.6 },
        { x: 0, y: 0.4 },
      ],
    ];
    expect(mean(runs)).toEqual([
      { x: 0, y: expect.closeTo(0.3, 12) },
      { x: 10, y: expect.closeTo(0.5, 12) },
    ]);
  });
});

it.each([
  [[0, 1] as const, [0, 0.2, 0.4, 0.6, 0.8, 1]],
  [[0, 200] as const, [0, 50, 100, 150, 200]],
  [[3, 17] as const, [5, 10, 15]],
  [[-0.2, 0.1] as const, [-0.2, -0.1, 0, 0.1]],
  [[5, 5] as const, [5]],
])('ticks of %j are round numbers', (range, expected) => {
  expect(ticks(range)).toEqual(expected);
});

describe('chartSvg', () => {
  const point = (x: number, y: number) => ({ x, y });

  it('draws each run, their mean and the references in one scale', () => {
    const svg = chartSvg({
      title: 'a < b & c',
      xLabel: 'updates',
      yLabel: 'won',
      runs: [
        [point(0, 0), point(10, 1)],
        [point(0, 1), point(10, 1)],
      ],
      references: [{ label: 'best', y: 0.5 }],
    });
    expect(svg).toContain('>a &lt; b &amp; c</text>');
    const lines = [...svg.matchAll(/<polyline points="([^"]*)"/g)].map(([, points]) => points);
    expect(lines).toEqual(['64,304 616,48', '64,48 616,48', '64,176 616,48']);
    expect(svg).toContain('y1="176" y2="176" stroke="#b3541e"');
  });

  it('draws other experiments beside it, each with its name', () => {
    const runs = [[point(0, 0), point(10, 1)]];
    const others = [{ label: 'flat', runs: [[point(0, 1), point(20, 1)]] }];
    const svg = chartSvg({ title: 't', xLabel: 'x', yLabel: 'y', runs, label: 'rising', others });
    const lines = [...svg.matchAll(/<polyline points="([^"]*)" fill="none" stroke="([^"]*)"/g)].map(([, ...of]) => of);
    expect(lines).toEqual([
      ['64,304 340,48', '#9db8d9'],
      ['64,48 616,48', '#e2b8a0'],
      ['64,304 340,48', '#1f5fa8'],
      ['64,48 616,48', '#a8481f'],
    ]);
    expect(svg).toMatch(/fill="#1f5fa8">rising<[\s\S]*fill="#a8481f">flat</);
  });

  it('refuses a run without points', () => {
    expect(() => chartSvg({ title: 't', xLabel: 'x', yLabel: 'y', runs: [[]] })).toThrow(
      "chart 't': a run has no points",
    );
  });
});
