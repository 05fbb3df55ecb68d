/** Bad input: an option, a config file, an argument. The command line prints the message and exits with `exitCode`. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly exitCode = 2;
  /** One line for each fault: where it stands, the value, what is expected. */
  readonly faults: readonly string[];

  constructor(faults: readonly string[], options?: { cause?: unknown }) {
    super(faults.join('\n'), options);
    this.faults = faults;
  }
}
