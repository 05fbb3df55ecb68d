/** What a sandbox runs and what comes back. */

export type Language = 'python' | 'javascript';

/** A program of its own: it reads standard input, writes standard output and ends. */
export interface Program {
  readonly language: Language;
  readonly source: string;
  readonly stdin?: string | undefined;
  /** Beside the program in its working directory: relative path → text. */
  readonly files?: Readonly<Record<string, string>> | undefined;
  readonly args?: readonly string[] | undefined;
}

/**
 * `ok`: ended by itself with exit code 0. `error`: an uncaught error (stderr holds the traceback), a syntax error or
 * another exit code. `timeout`, `memory`: past a limit. `output`: wrote far more than is kept. `killed`: by a signal
 * that is none of these, as a crash is.
 */
export type Ending = 'ok' | 'error' | 'timeout' | 'memory' | 'output' | 'killed';

export interface Execution {
  readonly ending: Ending;
  /** Of a program that ended by itself. */
  readonly exitCode: number | undefined;
  /** At most `outputBytes`, with a line that says what was cut. */
  readonly stdout: string;
  readonly stderr: string;
  readonly cut: boolean;
  readonly durationMs: number;
}

/** One cell of a session, or one call of a function. */
export interface Evaluation extends Omit<Execution, 'exitCode'> {
  /** A cell: its last expression as the language prints it, where it has one. A call: what it returned, as JSON. */
  readonly value: string | undefined;
  /** The traceback, or what else went wrong; undefined when `ending` is `ok`. */
  readonly error: string | undefined;
}

/** A started interpreter, alone in its sandbox: for one program, or for cells and calls that share their state. */
export interface Interpreter {
  readonly language: Language;
  /** False once it has ended, or was ended by a limit. */
  readonly alive: boolean;
  run(program: Omit<Program, 'language'>, timeoutMs?: number): Promise<Execution>;
  /** Runs a cell of an interactive session. */
  exec(source: string, timeoutMs?: number): Promise<Evaluation>;
  /** Calls a function (`f`, or `Class.method` on a new instance) that cells have defined, with arguments that JSON can say. */
  call(name: string, args: readonly unknown[], timeoutMs?: number): Promise<Evaluation>;
  /** Ends it with everything it has started. */
  close(): Promise<void>;
}

export interface Sandbox {
  /** Runs a program in an interpreter of its own. @throws the signal's reason; never for what the program does */
  run(program: Program, signal?: AbortSignal): Promise<Execution>;
  /** Lends a fresh interpreter, closed afterwards; waits while `concurrency` are lent. */
  use<T>(language: Language, body: (interpreter: Interpreter) => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** A fresh interpreter that is the caller's to close and does not count to `concurrency`. */
  start(language: Language): Promise<Interpreter>;
  /** Starts interpreters ahead of their use. */
  warm(language: Language, count: number): Promise<void>;
  /** Ends every interpreter; later calls are refused. */
  close(): Promise<void>;
}
