/** A task (one dataset row) and the chat messages it is made of. */

export interface ToolCall {
  readonly id?: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> | string };
}

/** One chat message in the form that chat templates of Hugging Face checkpoints expect. */
export interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool' | (string & {});
  readonly content: string;
  readonly tool_calls?: readonly ToolCall[];
  readonly tool_call_id?: string;
  readonly name?: string;
}

/** Encoded image file bytes (PNG, JPEG …); decoded by the engine that consumes it. */
export interface Image {
  readonly mediaType: string;
  readonly data: Uint8Array;
}

export interface Task {
  /** Unique inside its dataset; stable across runs (environment seeds derive from it). */
  readonly id: string;
  /** Text is fed as it is; messages are rendered by the chat template. */
  readonly prompt: string | readonly Message[];
  readonly label: string;
  readonly images?: readonly Image[];
  /** Groups evaluation metrics; OpenRLHF's `datasource`. */
  readonly source?: string;
  /** The whole dataset row. */
  readonly metadata: Readonly<Record<string, unknown>>;
}
