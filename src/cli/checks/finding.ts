/** One thing that `doctor` looked at. A remedy says what to do about what is not in order. */
export interface Finding {
  readonly what: string;
  readonly state: 'ok' | 'warning' | 'failed';
  readonly found: string;
  readonly remedy?: string;
}
