// Compiled by `.ci/web`, never run: what the package's types allow.

import { Experiment, ExperimentError, compareDevices, gpu, load, openCapsule, putFile, removeFile, schema, startRun, starter, threads, version } from "burn-runner";
import type { Checkpoint, Diagnostic, Epoch, Finished, TrainEvent } from "burn-runner";

export async function used(text: string): Promise<Uint8Array> {
  await load();
  console.log(await version(), Object.keys(await schema()));
  await putFile("rows.csv", new TextEncoder().encode("a,b\n1,2\n"), ["plan", "train"]);
  const first: string = await starter("rows.csv");
  await removeFile("rows.csv");
  if (first === "") return new Uint8Array();
  const experiment = new Experiment(text, "iris.toml");
  const found: Diagnostic[] = await experiment.check();
  if (found.some(({ severity }) => severity === "error")) throw new ExperimentError();
  const { runs, is_search } = await experiment.plan();
  if (is_search) console.log("the first round");
  const epochs: Epoch[] = [];
  const see = ({ losses, epoch }: TrainEvent) => {
    if (epoch && losses.every(Number.isFinite)) epochs.push(epoch);
  };
  const training = await experiment.train(see, { run: runs[0]?.id });
  const saved: Checkpoint = await training.checkpoint();
  const again = await startRun(await experiment.resolve(), saved);
  const { epoch, test }: Finished = await again.finish();
  console.log(epoch, test["test"]?.["accuracy"], (await again.predict([5.1, 3.5, 1.4, 0.2])).names);
  const { parameters } = (await again.modelInfo()).network;
  console.log(parameters, (await again.trainBatch()).loss, (await again.evalBatch())?.["accuracy"]);
  await load("files");
  const { count, reason }: { count: number; reason?: string } = await threads(2);
  console.log(count, reason);
  const found_gpu = await gpu();
  console.log("reason" in found_gpu ? found_gpu.remedy : found_gpu.name, (await compareDevices(await experiment.resolve(), 2)).wgpu);
  const { name, bytes } = await again.capsule();
  const page: string = await experiment.report([await again.record()]);
  console.log(page.length);
  const opened = await openCapsule(name, bytes);
  console.log(opened.run.id, opened.losses.length, (await opened.export("onnx")).length);
  // @ts-expect-error: this format does not exist.
  await again.export("zip");
  return again.export("onnx");
}
