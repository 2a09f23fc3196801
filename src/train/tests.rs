//! Training in this process, where weights are accessible.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use burn::data::dataloader::DataLoader;
use burn::module::Module;
use burn::store::ModuleRecord;
use burn::train::Interrupter;

#[allow(dead_code, reason = "shared with tests that use all of it")]
#[path = "../../tests/suite/edit.rs"]
mod edit;

use super::loader::{Cursor, Loader};
use super::{Emit, Job, device, execute, initial_network};
use edit::Edit;
use runner_core::data::{self, Moment, Values};
use runner_core::event::{Event, Outcome};
use runner_core::plan::PieceSizes;
use runner_core::plan::RunPlan;
use runner_core::record::{RunFolder, Trace};
use runner_core::spec::task::TaskKind;
use runner_core::spec::train::Sampler;
use runner_network::batch::Batch;
use runner_network::digest::weights_digest;
use runner_network::leaves;
use runner_network::network::Network;
use runner_network::paths::Paths;
use runner_network::targets::Targets;
use runner_network::tensor::DynTensor;
use runner_network::testing::{IRIS, generator, planned};
use runner_network::trainer::{Advance, Trainer};

/// Trains a run to its end.
fn trained(plan: &RunPlan, folder: &Path) -> RunFolder {
    executed(plan, folder, false, Arc::new(|_| {}))
}

fn executed(plan: &RunPlan, folder: &Path, is_probe: bool, emit: Emit) -> RunFolder {
    let folder = RunFolder(folder.to_owned());
    let job = Job {
        kernels: folder.0.join("kernels"),
        meter: Arc::new(super::Meter::new(plan, None)),
        is_probe,
        plan: plan.clone(),
        planned: plan.clone(),
        folder: folder.clone(),
        emit,
        has_stopped: Arc::default(),
        interrupter: Interrupter::new(),
        threads: 1,
        adjustments: Vec::new(),
        started: Instant::now(),
        initial: None,
        teacher: None,
        last_step: None,
        pause: None,
        fault: None,
    };
    assert_eq!(execute(&job).outcome, Outcome::Completed);
    folder
}

/// The values of each parameter with its path.
fn values(plan: &RunPlan, network: &Network) -> Vec<(String, Vec<f32>)> {
    let paths = Paths::new(plan);
    let mut found = Vec::new();
    leaves::each(network, |leaf| {
        found.push((paths.of(leaf.path), leaf.values().iter().collect()));
    });
    found
}

fn first_network(plan: &RunPlan) -> Network {
    let device = device::open(plan.device, plan.precision).expect("flex");
    initial_network(plan, None, &device).expect("first weights")
}

fn saved(plan: &RunPlan, folder: &RunFolder, name: &str) -> Vec<(String, Vec<f32>)> {
    let record = ModuleRecord::load(folder.model(name)).expect("weights were saved");
    values(plan, &first_network(plan).load_record(record))
}

/// Every loss to the bit, every digest of parameters, and the metrics of all epochs and of the test split.
fn assert_same_numbers(text: &str, stop_at: Option<usize>) {
    let plan = planned(text);
    let folder = tempfile::tempdir().expect("a folder");
    let events = Arc::new(Mutex::new(Vec::new()));
    let kept = events.clone();
    let emit = Arc::new(move |event| kept.lock().expect("no thread panicked").push(event));
    let run = executed(&plan, folder.path(), false, emit);
    let trace = Trace::read(&run).expect("a trace");
    let record = events.lock().expect("no thread panicked");

    let load = || data::load(&plan.data, &|_, _| {}).expect("it loads");
    let device = device::open(plan.device, plan.precision).expect("flex");
    let fresh = || Trainer::new(&plan, load(), &device, None, || 0.0);
    let mut trainer = fresh();
    let (mut losses, mut digests) = (Vec::new(), vec![trainer.digests().expect("finite")]);
    let mut epochs = Vec::new();
    while !trainer.is_done() {
        if stop_at == Some(losses.len()) && trainer.step() == losses.len() && epochs.len() < 2 {
            let saved = serde_json::to_vec(&trainer.save().expect("saved")).expect("JSON");
            // Other random numbers were drawn since.
            device.seed(99);
            let saved = serde_json::from_slice(&saved).expect("JSON");
            trainer = fresh().resume(saved).expect("its own state");
        }
        match trainer.advance().expect("no failure") {
            Advance::Updated { loss } => losses.push(loss),
            Advance::EpochFinished {
                epoch, digests: at, ..
            } => {
                epochs.push(epoch.metrics);
                digests.push(at);
            }
        }
    }
    assert_eq!(losses, trace.losses, "{text}");
    let of_weights = trace.digests.into_iter().map(|mut digests| {
        let is_weight = |(path, _): &(String, String)| !path.starts_with("optimizer/");
        digests.parameters.retain(is_weight);
        digests
    });
    assert_eq!(digests, of_weights.collect::<Vec<_>>(), "{text}");
    let of_epochs = record.iter().filter_map(|event| match event {
        Event::EpochFinished(epoch) => Some(epoch.metrics.clone()),
        _ => None,
    });
    assert_eq!(epochs, of_epochs.collect::<Vec<_>>(), "{text}");
    let finished = trainer.finish().expect("no failure");
    let tests = record.iter().filter_map(|event| match event {
        Event::SplitEvaluated { split, metrics, .. } => Some((split.clone(), metrics.clone())),
        _ => None,
    });
    let found = finished.tests.into_iter();
    let found: Vec<_> = found.map(|(split, of)| (split.to_owned(), of)).collect();
    assert_eq!(found, tests.collect::<Vec<_>>(), "{text}");
    assert_eq!(
        finished.evaluation,
        run.read_evaluation().expect("readable")
    );
    for (name, network) in finished
        .weights
        .into_iter()
        .chain([("best", finished.best)])
    {
        assert_eq!(
            values(&plan, &network),
            saved(&plan, &run, name),
            "{name}: {text}"
        );
    }
}

#[test]
fn one_step_at_a_time_gives_the_numbers_of_the_learner() {
    let _alone = generator();
    let layers = [
        "conv2d\", out_channels = 4, kernel_size = 3",
        "batch_norm\"",
        "relu\"",
        "dropout\", probability = 0.2",
        "flatten\"",
        "linear\"",
    ];
    let layers = layers
        .map(|layer| format!("{{ type = \"{layer} }}"))
        .join(", ");
    let cnn = IRIS
        .edit("iris", "digits")
        .edit(
            "model = { type = \"mlp\", hidden = [8] }",
            &format!("model.layers = [{layers}]"),
        )
        .edit("size = 25", "size = 300, micro_batch_size = 200");
    let dropout = IRIS
        .edit("[8]", "[8], dropout = 0.3")
        .edit("1e-2 }", "1e-2, clip = { global_norm = 1.0 } }")
        .edit("size = 25 }", "size = 25, log_gradient_norms = \"parameters\" }\ndata.split = { valid = 0.2, test = 0.2 }");
    let averaged = IRIS.edit(
        "size = 25 }",
        "size = 25, ema.decay = 0.9 }\nstrategy = { type = \"lookahead\", sync_steps = 3 }",
    );
    let autoencoder = "data.type = \"digits\"\ntask = { type = \"autoencoding\", metrics = [\"psnr\"] }\nmodel.layers = [{ type = \"conv2d\", out_channels = 1, kernel_size = 1 }]\n\
        data.augment = { flip = 0.5 }\noptimizer = { type = \"adamw\", learning_rate = 1e-2 }\ntrain = { epochs = 3, batch_size = 400 }\n";
    let waves = "data = { type = \"sine_windows\", length = 8 }\nmodel = { type = \"lstm\", hidden_size = 4 }\n\
        optimizer = { type = \"sgd\", learning_rate = 1e-2 }\nscheduler = { type = \"cosine\" }\ntrain = { epochs = 3, batch_size = 200 }\n";
    let longer = IRIS.edit("epochs = 3", "epochs = 5");
    let plateau = format!(
        "{longer}scheduler = {{ type = \"reduce_on_plateau\", patience = 1, min_delta = 10.0 }}\n"
    );
    let pair = IRIS.edit(
        "model = { type = \"mlp\", hidden = [8] }",
        "strategy = { type = \"adversarial\", discriminator_steps = 2 }\nloss.type = \"wgan_gp\"\nmodel.layers = [
            { type = \"noise\", size = 3 },
            { type = \"sequence\", name = \"generator\", layers = [{ type = \"linear\", out_features = 8 }, { type = \"batch_norm\" }, { type = \"dropout\" }, { type = \"linear\" }] },
            { type = \"sequence\", name = \"discriminator\", layers = [{ type = \"linear\", out_features = 8 }, { type = \"silu\" }, { type = \"linear\" }] },
        ]",
    );
    let pair = pair.edit(
        "size = 25 }",
        "size = 25, ema.decay = 0.9, micro_batch_size = 13, log_gradient_norms = \"parameters\" }\ndata.split = { valid = 0.2, test = 0.2 }",
    );
    for text in [
        IRIS,
        &cnn,
        &pair,
        &dropout,
        &averaged,
        autoencoder,
        waves,
        &plateau,
    ] {
        assert_same_numbers(text, None);
        // In the middle of an epoch, and at the end of one before its validation and after it.
        assert_same_numbers(text, Some(3));
    }
    assert_same_numbers(IRIS, Some(5));
}

#[test]
fn paths_are_those_of_the_plan() {
    let _alone = generator();
    let cnn = IRIS
        .edit("iris", "digits")
        .edit("mlp\"", "cnn\", channels = [4, 4], pool_size = 2");
    for text in [IRIS, &cnn] {
        let plan = planned(text);
        let found = Paths::new(&plan).parameters(&first_network(&plan));
        let found: Vec<_> = found.into_iter().map(|parameter| parameter.path).collect();
        assert_eq!(found, plan.network.parameter_paths());
    }
}

#[test]
fn a_probe_of_memory_evaluates_nothing() {
    let _alone = generator();
    let plan = planned(IRIS);
    let folder = tempfile::tempdir().expect("a folder");
    for is_probe in [true, false] {
        let place = folder.path().join(is_probe.to_string());
        let run = executed(&plan, &place, is_probe, Arc::new(|_| {}));
        let evaluation = run.read_evaluation().expect("it can be read");
        assert_eq!(evaluation.is_none(), is_probe);
    }
}

#[test]
fn micro_batches_train_as_the_large_batch_does() {
    let _alone = generator();
    // 120 items: batches of 25, the last of 20; pieces of 8, the last of 1 and of 4.
    let whole = planned(IRIS);
    let pieces = planned(&IRIS.edit("size = 25", "size = 25, micro_batch_size = 8"));
    assert_eq!(pieces.pieces(0, 8).collect::<Vec<_>>(), [8, 8, 8, 1]);
    assert_eq!(pieces.pieces(4, 8).collect::<Vec<_>>(), [8, 8, 4]);
    let folder = tempfile::tempdir().expect("a folder");
    let train = |plan, name| saved(plan, &trained(plan, &folder.path().join(name)), "final");
    let (whole, pieces) = (train(&whole, "whole"), train(&pieces, "pieces"));
    for ((path, whole), (_, pieces)) in whole.iter().zip(&pieces) {
        let largest = whole.iter().fold(0.0f32, |largest, v| largest.max(v.abs()));
        for (a, b) in whole.iter().zip(pieces) {
            assert!((a - b).abs() <= 1e-5 * largest, "{path}: {a} and {b}");
        }
    }
}

#[test]
fn what_is_frozen_stays_as_it_was_to_the_bit() {
    let _alone = generator();
    let text = IRIS
        .edit(
            "1e-2 }",
            "1e-2, weight_decay = 0.1, groups = [{ parameters = \"linear_1.*\", freeze = true }] }",
        )
        .edit("size = 25 }", "size = 25, ema.decay = 0.9 }");
    let plan = planned(&text);
    let folder = tempfile::tempdir().expect("a folder");
    let run = trained(&plan, folder.path());
    let before = values(&plan, &first_network(&plan));
    for name in ["final", "ema"] {
        for ((path, before), (_, after)) in before.iter().zip(saved(&plan, &run, name)) {
            assert_eq!(
                *before == after,
                path.starts_with("linear_1."),
                "{name} {path}"
            );
        }
    }
}

#[test]
fn weights_are_drawn_from_the_seed_before_anything_else() {
    let _generator = generator();
    let plan = planned(IRIS);
    let device = device::open(plan.device, plan.precision).expect("it is here");
    let network = first_network(&plan);
    // Later random numbers, such as those of dropout in a step, do not affect them.
    device.clone().autodiff().seed(1);
    let other = first_network(&plan);
    assert_eq!(weights_digest(&network), weights_digest(&other));
}

/// The content of a batch as bytes.
fn bytes(batch: Batch) -> Vec<Vec<u8>> {
    let inputs = match batch.inputs {
        DynTensor::Tokens(tokens) => tokens.into_data(),
        numbers => numbers.flatten().into_data(),
    };
    let targets = match batch.targets {
        Targets::Classes(classes) => classes.into_data(),
        Targets::Values(values) => values.into_data(),
    };
    [inputs, targets]
        .map(|data| data.as_bytes().to_vec())
        .into()
}

#[test]
fn batches_from_the_device_are_those_that_are_staged() {
    let autoencoder = "data.type = \"digits\"\ntask.type = \"autoencoding\"\nmodel.layers = [{ type = \"conv2d\", out_channels = 1, kernel_size = 1 }]\n\
        optimizer = { type = \"adamw\", learning_rate = 1e-2 }\ntrain = { epochs = 3, batch_size = 100 }\n";
    let tokens = "data = { type = \"copy_sequence\", num_items = 500 }\n\
        model = { type = \"transformer_lm\", d_model = 8, num_heads = 2 }\n\
        optimizer = { type = \"adamw\", learning_rate = 1e-2 }\ntrain = { epochs = 3, batch_size = 60 }\n";
    let balanced = IRIS.edit("train = {", "train = { sampler = \"balanced\",");
    for text in [IRIS, &balanced, autoencoder, tokens] {
        let text = text.edit("train = {", "train = { micro_batch_size = 10,");
        let plan = planned(&text);
        let loaded = data::load(&plan.data, &|_, _| {}).unwrap();
        let device = device::open(plan.device, plan.precision).unwrap();
        let cursor = Arc::new(Cursor::default());
        let staged = Loader::in_order("train", Arc::new(loaded.train), &plan, &device);
        let kept = staged.clone().keeping();
        // In order, and from the third step of the second epoch on.
        let pairs = [
            (staged.clone(), kept.clone()),
            (
                staged.clone().shuffled(plan.seed, cursor.clone()),
                kept.clone().shuffled(plan.seed, cursor.clone()),
            ),
        ];
        cursor.set(2, 2);
        for (staged, kept) in pairs {
            let of = |loader: &Loader| -> Vec<Vec<Vec<u8>>> {
                loader.iter().map(|batch| bytes(batch.unwrap())).collect()
            };
            let staged = of(&staged);
            assert!(staged.len() > 5);
            assert_eq!(staged, of(&kept));
        }
        let all = bytes(kept.iter().next().unwrap().unwrap());
        let item: usize = all.iter().map(Vec::len).sum::<usize>() / 10;
        let is_twice = plan.task.kind == TaskKind::Autoencoding;
        let expected = plan.kept_on_device()["train"] as usize * (1 + is_twice as usize);
        assert_eq!(item * plan.data.num_train, expected);
    }
}

/// A batch that is computed in pieces has the same mixed items, also if it is the first after a resume.
#[test]
fn pieces_of_a_mixed_batch_are_those_of_the_batch() {
    let text = "data = { type = \"digits\", augment = { shift = 0.2, mixup = {}, cutmix = {} } }\nmodel.type = \"mlp\"\n\
        optimizer = { type = \"adamw\", learning_rate = 1e-2 }\ntrain = { epochs = 3, batch_size = 100, PIECES }\n";
    let served = |pieces: &str, first_step: usize| {
        let plan = planned(&text.edit("PIECES", pieces));
        let loaded = data::load(&plan.data, &|_, _| {}).unwrap();
        let device = device::open(plan.device, plan.precision).unwrap();
        let cursor = Arc::new(Cursor::default());
        cursor.set(2, first_step);
        let loader = Loader::in_order("train", Arc::new(loaded.train), &plan, &device);
        let loader = loader.shuffled(plan.seed, cursor);
        let mut all = vec![Vec::new(); 4];
        for batch in loader.iter() {
            let batch = batch.unwrap();
            let mixed = batch.mixed.clone().unwrap();
            let Targets::Classes(others) = mixed.targets else {
                unreachable!()
            };
            let shares = mixed.shares.into_data();
            all[2].extend(others.into_data().as_bytes());
            all[3].extend(shares.as_bytes());
            let [inputs, targets] = bytes(batch).try_into().unwrap();
            all[0].extend(inputs);
            all[1].extend(targets);
        }
        all
    };
    let whole = served("micro_batch_size = 100", 0);
    assert_eq!(whole, served("micro_batch_size = 7", 0));
    let later = served("micro_batch_size = 30", 3);
    for (later, whole) in later.iter().zip(&whole) {
        assert!(!later.is_empty() && whole.ends_with(later));
    }
    let shares = whole[3]
        .chunks(4)
        .map(|share| f32::from_le_bytes(share.try_into().unwrap()));
    let shares: Vec<f32> = shares.collect();
    assert!(shares.iter().all(|share| (0.0..=0.5).contains(share)));
    assert!(shares.iter().any(|share| *share > 0.1));
}

/// An image that is drawn twice in an epoch is augmented twice.
#[test]
fn each_occurrence_of_an_image_is_augmented() {
    let plan = planned(
        "data = { type = \"digits\", augment = { shift = 0.4, rotate = 30 } }\nmodel.type = \"mlp\"\n\
         optimizer = { type = \"adamw\", learning_rate = 1e-2 }\ntrain = { epochs = 3, sampler = \"balanced\" }\n",
    );
    let train = data::load(&plan.data, &|_, _| {}).unwrap().train;
    let served = |moment: Moment, places: &[u32]| -> Vec<Vec<f32>> {
        match train.serve(places, Some(moment)).values {
            Values::Floats(values) => values.chunks(64).map(<[f32]>::to_vec).collect(),
            other => panic!("32-bit numbers were planned, found {other:?}"),
        }
    };
    let drawn = Moment::new(Sampler::Balanced, 1, 2);
    let pair = served(drawn, &[3, 3]);
    assert_ne!(pair[0], pair[1]);
    // It is that of its position, in whichever piece it is served.
    assert_eq!(pair[1..], served(drawn.from(1), &[3]));
    let once = served(Moment::new(Sampler::Random, 1, 2), &[3, 3]);
    assert_eq!(once[0], once[1]);
}

#[test]
fn the_first_items_are_served_from_what_is_kept_of_all() {
    let plan = planned(IRIS);
    let loaded = data::load(&plan.data, &|_, _| {}).unwrap();
    let device = device::open(plan.device, plan.precision).unwrap();
    let all = Loader::in_order("train", Arc::new(loaded.train), &plan, &device);
    let first = |loader: Loader| -> Vec<Vec<Vec<u8>>> {
        let first = loader.first(30);
        first.iter().map(|batch| bytes(batch.unwrap())).collect()
    };
    let staged = first(all.clone());
    assert_eq!(staged.len(), 2);
    assert_eq!(staged, first(all.keeping()));
}

#[test]
fn pieces_are_those_of_their_step() {
    let plan = planned(IRIS);
    let changes = ["5:micro_batch_size=10", "7:micro_batch_size=4"];
    let changes = changes.map(|text| text.parse().unwrap());
    let sizes = PieceSizes::new(&plan, &changes);
    assert_eq!(
        [0, 4, 5, 6, 7, 90].map(|step| sizes.at(step)),
        [25, 25, 10, 10, 4, 4]
    );
    let loaded = data::load(&plan.data, &|_, _| {}).unwrap();
    let device = device::open(plan.device, plan.precision).unwrap();
    let cursor = Arc::new(Cursor::default());
    let train = Loader::in_order("train", Arc::new(loaded.train), &plan, &device);
    let train = train.in_pieces(Arc::new(sizes));
    let num = |loader: &Loader| -> Vec<usize> {
        let batches = loader.iter().map(|batch| batch.unwrap().inputs.dims()[0]);
        batches.collect()
    };
    // The second epoch of 5 steps, from its second on: steps 6 to 9, the last of 20 items.
    cursor.set(2, 1);
    let shuffled = train.clone().shuffled(plan.seed, cursor.clone());
    let found = num(&shuffled);
    assert_eq!(found[..3], [10, 10, 5]);
    assert_eq!(found[3..10], [4, 4, 4, 4, 4, 4, 1]);
    // Measurements after an epoch belong to its last step; without a training, to the last of all.
    cursor.set(1, 0);
    assert_eq!(num(&train.clone().following(cursor))[0], 25);
    assert_eq!(num(&train)[0], 4);
}

#[test]
fn a_limit_is_no_part_of_what_a_calibration_depends_on() {
    let plan = planned(IRIS);
    let limited = RunPlan {
        memory_limit_bytes: Some(plan.forecast.without_kept()),
        ..plan.clone()
    }
    .with_forecast();
    assert!(plan.forecast.kept > limited.forecast.kept);
    let [plan, limited] = [plan, limited].map(|plan| plan.memory_key(&serde_json::json!(null)));
    assert_eq!(plan, limited);
}

#[test]
fn what_changes_or_does_not_fit_is_not_kept_on_the_device() {
    let digits = IRIS.edit("iris", "digits");
    let all = planned(&digits).kept_on_device();
    assert_eq!(all.keys().copied().collect::<Vec<_>>(), ["train", "valid"]);
    let changed = format!("{digits}data.augment = {{ flip = 0.5 }}\n");
    let changed = planned(&changed).kept_on_device();
    assert_eq!(changed.keys().copied().collect::<Vec<_>>(), ["valid"]);
    let mut plan = planned(&digits);
    let needed: u64 = all.values().sum();
    plan.memory_limit_bytes = Some(plan.forecast.without_kept() + 4 * needed);
    assert_eq!(plan.kept_on_device(), all);
    plan.memory_limit_bytes = Some(plan.forecast.without_kept() + 4 * needed - 1);
    assert!(plan.kept_on_device().is_empty());
}
