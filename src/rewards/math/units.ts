/** Words behind a number that change its value. */
export const SCALES: ReadonlyMap<string, bigint> = new Map([
  ['hundred', 100n],
  ['thousand', 1000n],
  ['million', 1_000_000n],
  ['billion', 1_000_000_000n],
  ['trillion', 1_000_000_000_000n],
  ['dozen', 12n],
]);
export const PERCENT = new Set(['percent', 'pct', 'percentage']);
export const DEGREES = new Set(['degree', 'degrees', 'deg']);

/** Units of two and three letters; a longer word behind a number is one anyway. */
const SHORT = new Set(
  (
    'mm cm dm km in ft yd mi mg kg lb lbs oz ml mL cl dl gal ms min hr hrs mph kph kmh km kWh Hz kHz MHz Pa kPa eV kJ kW ' +
    'mA mV sq cu rad mol USD EUR GBP am pm th st nd rd yr yrs cents'
  ).split(' '),
);

/** Whether a word behind a number names what is counted, rather than a product of symbols such as xy. */
export const isUnit = (word: string, spaced: boolean) =>
  SHORT.has(word) || word.length > 3 || (spaced && word.length === 3);
