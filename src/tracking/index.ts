export { type ConsoleField, type ConsoleStream, consoleTracker, formatMetric, formatTime } from './console.ts';
export { jsonlTracker } from './jsonl.ts';
export { type EpisodesRecord, fanOut, type MetricsRecord, type Tracker, type TrackerFailure } from './tracker.ts';
