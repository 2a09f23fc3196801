/** A message about an experiment file. */
export interface Diagnostic {
  severity: "error" | "warning";
  /** The rule, such as `unknown-key`. */
  code: string;
  message: string;
  file: string | null;
  /** From 1. */
  line: number | null;
  /** From 1. */
  column: number | null;
  /** The marked text. */
  marked: string | null;
  label: string;
  notes: string[];
  helps: string[];
  related: { file: string | null; line: number | null; column: number | null; label: string }[];
  /** The whole message as the command line prints it. */
  text: string;
}

export interface Layer {
  name: string;
  type: string;
  /** Names of layers, or `input`. */
  inputs: string[];
  /** Of one item. */
  shape: number[];
  parameters: number;
}

export interface Run {
  id: string;
  trial: string;
  seed: number;
  fingerprint: string;
  axes: Record<string, unknown>;
  /** `flex` is the processor, and `wgpu` WebGPU. */
  device: string;
  /** Why it cannot be trained here, if it cannot. */
  skipped: string | null;
  task: string;
  objective: string;
  epochs: number;
  batch_size: number;
  steps_per_epoch: number;
  steps: number;
  data: {
    name: string;
    train: number;
    valid: number;
    test: number;
    shape: number[];
    target: string;
  };
  network: { shape: number[]; parameters: number; multiply_adds: number; layers: Layer[] };
}

export interface Plan {
  experiment: string;
  question: string;
  objective: string;
  higher_is_better: boolean;
  /** Whether further trials depend on results: `runner run` suggests them, and the plan has those of the first round. */
  is_search: boolean;
  axes: string[];
  notices: string[];
  warnings: Diagnostic[];
  runs: Run[];
}

export interface Epoch {
  /** From 1. */
  epoch: number;
  /** Updates up to its end. */
  step: number;
  /** By name, such as `valid/loss`. */
  metrics: Record<string, number>;
  train_secs: number;
  valid_secs: number;
}

/** What a slice of a training did. */
export interface TrainEvent {
  /** Of each update. */
  losses: number[];
  /** Updates so far. */
  step: number;
  /** Updates of the whole training. */
  steps: number;
  /** The epoch that was finished, if one was. */
  epoch: (Epoch & { is_best: boolean }) | null;
  is_done: boolean;
}

/** The state of a training: plain data. */
export interface Checkpoint {
  model: Uint8Array;
  optimizer: Uint8Array;
  scheduler: Uint8Array;
  best?: Uint8Array;
  losses: Uint8Array;
  digests: string;
  state: string;
}

/** What is known of a training that has ended: plain data. */
export interface TrainingRecord {
  about: string;
  files: [string, Uint8Array][];
}

export interface Finished {
  /** The best epoch. */
  epoch: number;
  /** The metrics of the test split, by split and name; averages of weights have splits of their own. */
  test: Record<string, Record<string, number>>;
  /** As `evaluation.json` of a run. */
  evaluation: unknown;
  /** Of the weights after the last update. */
  weights_digest: string | null;
}

export interface Predicted {
  /** As a line of `runner predict --format jsonl`. */
  prediction: Record<string, unknown> & { type: string };
  /** The names of classes, labels or numbers. */
  names: string[];
}

export interface ModelInfo extends Run {
  experiment: string;
  /** The names of classes, labels or numbers. */
  classes: string[];
  /** The shape of the output for one item. */
  outputs: number[];
  /** Updates so far. */
  step: number;
}

export type Format = "safetensors" | "pytorch" | "pytorch-json" | "npz" | "onnx";

/** An experiment file that is wrong. */
export class ExperimentError extends Error {
  diagnostics: Diagnostic[];
}

/** An experiment file. */
export class Experiment {
  readonly text: string;
  readonly name: string;
  constructor(text: string, name?: string);
  /** All messages about the file, as the command line prints them. */
  check(): Promise<Diagnostic[]>;
  /** The runs; throws an {@link ExperimentError}. */
  plan(): Promise<Plan>;
  /** A run with everything resolved: a text that {@link startRun} trains, also in another worker. */
  resolve(run?: string): Promise<string>;
  /** A run before its first update, or as a checkpoint left it. */
  start(run?: string, checkpoint?: Checkpoint): Promise<Training>;
  /** The report of trainings of its runs, as `runner report` writes it: an HTML page. */
  report(records: TrainingRecord[]): Promise<string>;
  /** Trains a run to its end; by default the first one. */
  train(
    onEvent?: (event: TrainEvent) => void,
    options?: { run?: string; checkpoint?: Checkpoint; signal?: AbortSignal },
  ): Promise<Training>;
}

/** A run in training, or after it. Calls are made one after the other. */
export class Training {
  private constructor();
  readonly step: number;
  readonly isDone: boolean;
  readonly history: Epoch[];
  /** At most so many updates for at most so many seconds, no further than the end of an epoch. */
  advance(updates?: number, secs?: number): Promise<TrainEvent>;
  /** Trains until the end or until `signal` aborts; returns whether it is the end. */
  run(onEvent?: (event: TrainEvent) => void, signal?: AbortSignal): Promise<boolean>;
  /** The next update of the plan; throws after the last one. */
  trainBatch(): Promise<{ loss: number; step: number; epoch: TrainEvent["epoch"] }>;
  /** The metrics of the current weights on a batch of the valid split, from 0; null after the last one. */
  evalBatch(at?: number): Promise<Record<string, number> | null>;
  /** The network, its task and its data. */
  modelInfo(): Promise<ModelInfo>;
  checkpoint(): Promise<Checkpoint>;
  /** The confusion matrix and the worst mistakes of the current weights, where the task has them. */
  errors(): Promise<unknown>;
  /** Evaluates the best weights, which predict and are exported from then on. */
  finish(): Promise<Finished>;
  /** The prediction for an item: its numbers in the units of the data. Not for runs on tables, texts and pictures. */
  predict(item: ArrayLike<number>): Promise<Predicted>;
  /** A file of the weights. */
  export(format: Format): Promise<Uint8Array>;
  /** The run with its data in a file, from which `runner reproduce` trains it again; for a training that has ended. */
  capsule(): Promise<{ name: string; bytes: Uint8Array }>;
  /** What {@link Experiment.report} needs of a training that has ended. */
  record(): Promise<TrainingRecord>;
  free(): Promise<void>;
}

/** The run of a capsule: what was recorded of it, and its weights. */
export class OpenedRun {
  private constructor();
  readonly experiment: string;
  readonly run: Run;
  readonly outcome: "completed" | "failed" | "interrupted" | "pruned" | "skipped" | "incomplete";
  /** Of each update; NaN if it was lost. */
  readonly losses: number[];
  readonly history: Epoch[];
  readonly finished: Finished;
  /** A file of its best weights. */
  export(format: Format): Promise<Uint8Array>;
  free(): void;
}

/** Opens a capsule of the program or of a page; throws if it is damaged. `name` is its name in messages. */
export function openCapsule(name: string, bytes: Uint8Array): Promise<OpenedRun>;
/** The browser's GPU, which is the device `wgpu`, or why there is none and what helps. */
export function gpu(): Promise<{ name: string; isSoftware: boolean } | { reason: string; remedy: string }>;
/**
 * Starts the threads that train on the processor, before the first training, by default one for each processor. Those that
 * were started stay. The result says why it is only one. `failures` is the name of a `BroadcastChannel` with the message of
 * a thread that failed; the training waits for it forever.
 */
export function threads(wanted?: number): Promise<{ count: number; reason?: string; failures?: string }>;
/** The loss of a run on both devices: of the first valid batch before training, and after some updates, 10 by default. */
export function compareDevices(run: string, updates?: number): Promise<{ updates: number; flex: number[]; wgpu: number[] }>;
/** A run of {@link Experiment.resolve} before its first update, or as a checkpoint left it. */
export function startRun(run: string, checkpoint?: Checkpoint): Promise<Training>;
/** A WebAssembly module: it checks and plans, trains on one or several threads or on WebGPU, or makes files of trainings. */
export type Part = "plan" | "train" | "threads" | "gpu" | "files";
/** Loads a module before it is needed, `plan` by default, from the one next to the package's code by default. */
export function load(part?: Part, module?: BufferSource | WebAssembly.Module): Promise<void>;
/**
 * Adds a file that experiment files can name, or replaces it; `path` is from the folder of the experiment file. A worker
 * that only calls {@link startRun} needs it for `train` alone.
 */
export function putFile(path: string, bytes: Uint8Array, parts?: ("plan" | "train")[]): Promise<void>;
/** Removes a file, or all files of a folder. */
export function removeFile(path: string): Promise<void>;
/** The text of a first experiment file for a file or folder that was added. */
export function starter(path: string): Promise<string>;
/** The JSON schema of experiment files. */
export function schema(): Promise<Record<string, unknown>>;
/** The version of burn-runner. */
export function version(): Promise<string>;
