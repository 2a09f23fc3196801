//! Weight deltas: a delta leads exactly to the weights that it was made from, for all bit patterns; means; refusals.

use std::fs;
use std::path::Path;

use burn_runner::exchange::delta::{self, Delta, digest};
use burn_runner::exchange::read::Weights;
use burn_runner::exchange::tensors::{Dtype, NamedTensor, Tensors};
use burn_runner::exchange::write::{safetensors, safetensors_about};
use burn_runner::spec::init::InitLayout;
use proptest::prelude::*;

use super::support::{IRIS, completed, run, tree};

/// Applies a delta to a file; another file follows.
const APPLY: [&str; 6] = [
    "delta",
    "apply",
    "d.safetensors",
    "--to",
    "a.safetensors",
    "--out",
];

const FLOATS: [Dtype; 4] = [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::Bf16];

fn set(tensors: impl IntoIterator<Item = NamedTensor>) -> Tensors {
    let mut all = Tensors::new();
    tensors
        .into_iter()
        .for_each(|tensor| all.push(tensor).unwrap());
    all
}

/// A tensor from the lowest bytes of each pattern.
fn of_bits(name: &str, dtype: Dtype, bits: &[u64]) -> NamedTensor {
    let bytes = bits
        .iter()
        .flat_map(|bits| bits.to_le_bytes()[..dtype.size()].to_vec());
    NamedTensor::new(name, vec![bits.len()], dtype, bytes.collect()).unwrap()
}

/// A delta after it was written and read again.
fn filed(delta: &Delta) -> Delta {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.safetensors");
    delta::write(delta, fs::File::create(&path).unwrap()).unwrap();
    let read = delta::read(&path).unwrap();
    let again = folder.path().join("again.safetensors");
    delta::write(&read, fs::File::create(&again).unwrap()).unwrap();
    assert!(fs::read(&path).unwrap() == fs::read(&again).unwrap());
    read
}

/// Patterns of one and the same type: random ones, and what is special in each type of float.
fn bits() -> impl Strategy<Value = u64> {
    let of_f32 = |value: f32| u64::from(value.to_bits()) << 32 | u64::from(value.to_bits());
    let special = [
        0.0,
        -0.0,
        f32::MIN_POSITIVE,
        -f32::from_bits(1),
        f32::MAX,
        f32::MIN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        -f32::NAN,
        1.0,
        1e-30,
        -1e30,
    ];
    let special: Vec<u64> = special.into_iter().map(of_f32).collect();
    prop_oneof![
        4 => any::<u64>(),
        1 => proptest::sample::select(special),
        // A NaN with a payload, and the numbers beside 1.
        1 => (0x7f80_0001_u64..0x7fff_ffff).prop_map(|low| low << 32 | low),
        1 => (0x3f7f_fff0_u64..0x3f80_0010).prop_map(|low| low << 32 | low),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever the bits are, huge, tiny, infinite or not a number: base + (target - base) is the target.
    #[test]
    fn a_delta_leads_exactly_to_its_target(
        which in 0..FLOATS.len(),
        pairs in proptest::collection::vec((bits(), bits()), 1..40),
    ) {
        let (from, to): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
        let base = set([of_bits("a.weight", FLOATS[which], &from)]);
        let target = set([of_bits("a.weight", FLOATS[which], &to)]);
        let delta = filed(&Delta::between(&base, &target, InitLayout::Pytorch).unwrap());
        let reached = delta.apply(&base, 1.0).unwrap();
        prop_assert_eq!(reached.get("a.weight").unwrap().bytes(), target.get("a.weight").unwrap().bytes());
        prop_assert_eq!(Some(digest(&reached)), delta.target);
    }

    /// For types up to 32 bits, 64-bit differences are enough unless a value vanishes beside the one before.
    #[test]
    fn few_values_must_be_kept(from in -1e3_f32..1e3, to in -1e3_f32..1e3) {
        let tensor = |value: f32| set([NamedTensor::from_f32s("w", vec![1], &[value])]);
        let delta = Delta::between(&tensor(from), &tensor(to), InitLayout::Pytorch).unwrap();
        let vanishes = to.abs() < from.abs() * 2_f32.powi(-27) || to.to_bits() == (-0.0_f32).to_bits();
        prop_assert!(vanishes || delta.num_kept() == 0);
    }
}

/// A sum alone would lose these.
#[test]
fn values_that_a_sum_loses_are_kept() {
    let cases = [
        (1e30_f32, 1e-30, 1),
        (1.0, -0.0, 1),
        (-0.0, -0.0, 1),
        (1.0, f32::INFINITY, 1),
        (f32::NAN, 1.0, 1),
        (1e30, 0.0, 0),
        (0.1, 0.3, 0),
    ];
    for (from, to, num) in cases {
        let tensor = |value: f32| set([NamedTensor::from_f32s("w", vec![1], &[value])]);
        let delta = Delta::between(&tensor(from), &tensor(to), InitLayout::Pytorch).unwrap();
        assert_eq!(delta.num_kept(), num, "{from} to {to}");
    }
}

/// In the file, the places of values that are kept have the name of their parameter with an end.
#[test]
fn a_name_that_would_stand_for_another_tensor_is_refused() {
    let tensor = |name: &str| NamedTensor::from_f32s(name, vec![1], &[1.0]);
    let delta = |names: [&str; 2]| {
        let [from, to] = [0; 2].map(|_| set(names.map(tensor)));
        Delta::between(&from, &to, InitLayout::Pytorch).unwrap()
    };
    assert_eq!(filed(&delta(["w", "v//at"])).parameters.len(), 2);
    for names in [["w", "w//at"], ["w//to", "w"]] {
        let error = delta::write(&delta(names), Vec::new()).unwrap_err();
        assert!(error.to_string().contains("two tensors"), "{error}");
    }
}

/// The digest is of names and values, in whatever order a file has them.
#[test]
fn a_digest_is_of_names_types_shapes_and_values() {
    let tensor =
        |name: &str, shape: Vec<usize>, values: &[f32]| NamedTensor::from_f32s(name, shape, values);
    let one = || {
        [
            tensor("a", vec![2], &[1.0, 2.0]),
            tensor("b", vec![1], &[3.0]),
        ]
    };
    let [a, b] = one();
    assert_eq!(digest(&set(one())), digest(&set([b, a])));
    let others = [
        set([
            tensor("a", vec![2], &[1.0, 2.0]),
            tensor("c", vec![1], &[3.0]),
        ]),
        set([
            tensor("a", vec![2], &[1.0, 2.5]),
            tensor("b", vec![1], &[3.0]),
        ]),
        set([
            tensor("a", vec![1, 2], &[1.0, 2.0]),
            tensor("b", vec![1], &[3.0]),
        ]),
        set([
            tensor("a", vec![2], &[1.0, 2.0]).cast(Dtype::F64),
            tensor("b", vec![1], &[3.0]),
        ]),
    ];
    for other in others {
        assert_ne!(digest(&set(one())), digest(&other));
    }
}

const RUN: &str = "results/spec/runs/base-s1";

fn done(folder: &Path, arguments: &[&str]) -> (String, String) {
    let (code, printed, said) = run(folder, arguments);
    assert_eq!(code, 0, "{arguments:?}: {said}");
    (printed, said)
}

fn values(path: &Path) -> Vec<(String, Vec<f64>)> {
    let weights = Weights::open(path, None).unwrap();
    let names = weights
        .entries()
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    let mut all = Vec::new();
    weights
        .read(&names, &mut |tensor| {
            all.push((tensor.name().to_owned(), tensor.to_f64s()));
            Ok(())
        })
        .unwrap();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// What training changed goes into a file, and with the initial weights gives the trained ones, which start a run.
#[test]
fn what_training_changed_is_a_file_that_leads_from_the_first_weights_to_the_last() {
    // Batch norms have running statistics; the constants of positions are not learned.
    let spec = "data = { type = 'brackets', length = 6 }\n\
        optimizer = { type = 'adam', learning_rate = 1e-2 }\ntrain = { epochs = 1, batch_size = 64 }\n\
        model.layers = [{ type = 'embedding', embedding_dim = 4 }, { type = 'positional_encoding' }, \
        { type = 'gru', hidden_size = 3, bidirectional = true, output = 'last', name = 'the.gru' }, \
        { type = 'batch_norm' }, { type = 'linear', name = 'fc-1' }]\n";
    let folder = completed(spec, &[]);
    let folder = folder.path();
    let diff = ["delta", "diff", RUN, RUN, "--base-weights", "initial"];
    let (printed, _) = done(folder, &[&diff[..], &["--out", "d.safetensors"]].concat());
    assert!(printed.contains("the_gru.weight_ih_l0"), "{printed}");
    assert!(!printed.contains("sinusoids"), "{printed}");
    let (json, _) = done(folder, &[&diff[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["all"]["norm"].as_f64().unwrap() > 0.0);
    assert_ne!(json["base"]["digest"], json["target"]["digest"]);
    assert!(json["parameters"].as_array().unwrap().len() > 8);

    let apply = [
        "delta",
        "apply",
        "d.safetensors",
        "--to",
        RUN,
        "--weights",
        "initial",
    ];
    let (_, said) = done(
        folder,
        &[&apply[..], &["--out", "sum.safetensors"]].concat(),
    );
    assert!(said.contains("exactly the weights"), "{said}");
    let export = ["export", "weights", RUN, "--format", "safetensors", "--out"];
    done(folder, &[&export[..], &["best.safetensors"]].concat());
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    assert!(read("sum.safetensors") == read("best.safetensors"));

    // A file and a capsule have the digests of the run.
    done(folder, &["bundle", RUN, "--out", "run.capsule.tar.zst"]);
    for other in ["best.safetensors", "run.capsule.tar.zst"] {
        let (json, _) = done(folder, &["delta", "diff", RUN, other, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["base"]["digest"], json["target"]["digest"], "{other}");
        assert_eq!(json["all"]["num_changed"], 0, "{other}");
        assert_eq!(json["all"]["norm"], 0.0, "{other}");
    }

    // Another run starts from the sum.
    let again = format!("{spec}init = {{ from = 'sum.safetensors' }}\n");
    fs::write(folder.join("again.toml"), again).unwrap();
    done(folder, &["run", "again.toml", "--quiet"]);
    // The choice of weights is that of the run, and a file has none.
    let again = "results/again/runs/base-s1";
    let chosen = [
        "delta",
        "diff",
        "sum.safetensors",
        again,
        "--weights",
        "initial",
        "--json",
    ];
    let (json, _) = done(folder, &chosen);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["base"]["digest"], json["target"]["digest"]);
    let files = [
        "delta",
        "diff",
        "sum.safetensors",
        "best.safetensors",
        "--weights",
        "initial",
    ];
    let (code, _, said) = run(folder, &files);
    assert!(
        code == 2 && said.contains("has no choice of `initial` weights"),
        "{said}"
    );
    let again = ["export", "weights", "results/again", "--weights", "initial"];
    let again = [
        &again[..],
        &["--format", "safetensors", "--out", "first.safetensors"],
    ]
    .concat();
    done(folder, &again);
    assert!(read("sum.safetensors") == read("first.safetensors"));
}

/// A file whose metadata says so has Burn's names and layouts, as has what is made from it.
#[test]
fn layouts_are_those_of_the_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let write = |name: &str, value: f32, about: (&str, &str)| {
        let tensors = set([NamedTensor::from_f32s("fc.weight", vec![1, 2], &[value; 2])]);
        safetensors_about(
            &tensors,
            about,
            fs::File::create(folder.join(name)).unwrap(),
        )
        .unwrap();
    };
    write("a.safetensors", 1.0, ("layout", "burn"));
    write("b.safetensors", 3.0, ("layout", "burn"));
    write("torch.safetensors", 3.0, ("format", "pt"));
    let layout = |name: &str| Weights::open(&folder.join(name), None).unwrap().layout();
    assert_eq!(layout("a.safetensors"), InitLayout::Burn);
    assert_eq!(layout("torch.safetensors"), InitLayout::Pytorch);
    let diff = ["delta", "diff", "a.safetensors"];
    done(
        folder,
        &[&diff[..], &["b.safetensors", "--out", "d.safetensors"]].concat(),
    );
    done(folder, &[&APPLY[..], &["c.safetensors"]].concat());
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    assert!(read("b.safetensors") == read("c.safetensors"));
    let (code, _, said) = run(folder, &[&diff[..], &["torch.safetensors"]].concat());
    assert!(
        code == 2 && said.contains("has the names of `burn`"),
        "{said}"
    );
}

#[test]
fn scales_and_means_are_of_the_differences() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let write = |name: &str, values: &[f32]| {
        let tensors = set([NamedTensor::from_f32s("fc.weight", vec![2, 2], values)]);
        safetensors(&tensors, fs::File::create(folder.join(name)).unwrap()).unwrap();
    };
    write("zero.safetensors", &[1.0, 2.0, 3.0, 4.0]);
    write("one.safetensors", &[2.0, 2.0, 1.0, 4.5]);
    write("two.safetensors", &[5.0, 2.0, 3.0, 0.5]);
    let diff = |to: &str, out: &str| {
        done(
            folder,
            &["delta", "diff", "zero.safetensors", to, "--out", out],
        );
    };
    diff("one.safetensors", "d1.safetensors");
    diff("two.safetensors", "d2.safetensors");
    let apply = ["delta", "apply"];
    let applied = |delta: &str, more: &[&str]| {
        let rest = [
            "--to",
            "zero.safetensors",
            "--out",
            "sum.safetensors",
            "--force",
        ];
        done(folder, &[&apply[..], &[delta], &rest[..], more].concat());
        values(&folder.join("sum.safetensors")).remove(0).1
    };
    assert_eq!(
        applied("d1.safetensors", &["--scale", "0.5"]),
        [1.5, 2.0, 2.0, 4.25]
    );
    assert_eq!(
        applied("d1.safetensors", &["--scale", "-1"]),
        [0.0, 2.0, 5.0, 3.5]
    );
    let average = [
        "delta",
        "average",
        "d1.safetensors",
        "d2.safetensors",
        "--out",
        "m.safetensors",
    ];
    done(folder, &average);
    assert_eq!(applied("m.safetensors", &[]), [3.5, 2.0, 2.0, 2.5]);
    let factors = ["--factor", "300", "--factor", "100", "--force"];
    done(folder, &[&average[..], &factors].concat());
    assert_eq!(applied("m.safetensors", &[]), [2.75, 2.0, 1.5, 3.5]);

    // Deltas that start from different weights are only averaged if that is meant, and then have no base.
    done(
        folder,
        &[
            "delta",
            "diff",
            "one.safetensors",
            "two.safetensors",
            "--out",
            "d3.safetensors",
        ],
    );
    let mixed = [
        "delta",
        "average",
        "d1.safetensors",
        "d3.safetensors",
        "--out",
        "mixed.safetensors",
    ];
    let (code, _, said) = run(folder, &mixed);
    assert!(
        code == 2 && said.contains("start from different weights"),
        "{said}"
    );
    assert!(!folder.join("mixed.safetensors").exists());
    done(folder, &[&mixed[..], &["--any-base"]].concat());
    let rest = ["--to", "zero.safetensors", "--out", "x.safetensors"];
    let mixed = [&["delta", "apply", "mixed.safetensors"], &rest[..]].concat();
    let (code, _, said) = run(folder, &mixed);
    assert!(
        code == 2 && said.contains("a mean of deltas that start from"),
        "{said}"
    );
    done(folder, &[&mixed[..], &["--any-base"]].concat());
}

/// Whatever is wrong is refused with its place before anything is written.
#[test]
fn deltas_that_do_not_fit_are_refused_and_write_nothing() {
    let folder = completed(IRIS, &["--set", "train.epochs=1"]);
    let folder = folder.path();
    let tensor = |name: &str, shape: Vec<usize>| {
        let num = shape.iter().product();
        NamedTensor::from_f32s(name, shape, &vec![0.5; num])
    };
    let write = |name: &str, tensors: Vec<NamedTensor>| {
        safetensors(&set(tensors), fs::File::create(folder.join(name)).unwrap()).unwrap();
    };
    write(
        "other.safetensors",
        vec![
            tensor("linear_1.weight", vec![16, 5]),
            tensor("linear_1.bias", vec![16]).cast(Dtype::F64),
            tensor("linear_2.weight", vec![3, 16]),
            tensor("head.bias", vec![3]),
            // Not learned, so not compared.
            NamedTensor::from_i64s("bn.num_batches_tracked", vec![], &[7]),
        ],
    );
    write(
        "whole.safetensors",
        vec![NamedTensor::from_i64s("a", vec![1], &[7])],
    );
    write(
        "same.safetensors",
        vec![
            tensor("linear_1.weight", vec![16, 4]),
            tensor("linear_1.bias", vec![16]),
            tensor("linear_2.weight", vec![3, 16]),
            tensor("linear_2.bias", vec![3]),
        ],
    );
    done(
        folder,
        &[
            "delta",
            "diff",
            RUN,
            "same.safetensors",
            "--out",
            "d.safetensors",
        ],
    );
    let bytes = fs::read(folder.join("d.safetensors")).unwrap();
    fs::write(folder.join("cut.safetensors"), &bytes[..bytes.len() - 8]).unwrap();
    let replaced = |name: &str, from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = bytes
            .windows(from.len())
            .position(|it| it == from.as_bytes())
            .unwrap();
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        fs::write(folder.join(name), bytes).unwrap();
    };
    replaced(
        "newer.safetensors",
        "\\\"version\\\":1",
        "\\\"version\\\":2",
    );
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 0x40;
    fs::write(folder.join("changed.safetensors"), changed).unwrap();
    let init = format!("{IRIS}\n[init]\nfrom = 'd.safetensors'\n");
    fs::write(folder.join("init.toml"), init).unwrap();
    let before = tree(folder);

    let diff =
        |a: &'static str, b: &'static str| vec!["delta", "diff", a, b, "--out", "new.safetensors"];
    let apply = |delta: &'static str, to: &'static str| {
        vec![
            "delta",
            "apply",
            delta,
            "--to",
            to,
            "--out",
            "new.safetensors",
        ]
    };
    let cases: Vec<(Vec<&str>, &[&str])> = vec![
        (
            diff(RUN, "other.safetensors"),
            &[
                "have different parameters",
                "`linear_1.weight` is [16, 4] in the best weights of `results/spec/runs/base-s1` and [16, 5] in `other.safetensors`",
                "`linear_1.bias` is f32 in the best weights of `results/spec/runs/base-s1` and f64 in `other.safetensors`",
                "only in the best weights of `results/spec/runs/base-s1`: `linear_2.bias` [3]",
                "only in `other.safetensors`: `head.bias` [3]",
            ],
        ),
        (
            apply("d.safetensors", "other.safetensors"),
            &["their digests differ", "--any-base"],
        ),
        (
            [
                apply("d.safetensors", "other.safetensors"),
                vec!["--any-base"],
            ]
            .concat(),
            &[
                "`d.safetensors` does not fit `other.safetensors`",
                "`linear_1.weight` is [16, 4] in the delta and [16, 5] in the weights",
                "only in the delta: `linear_2.bias` [3]",
                "only in the weights: `head.bias` [3]",
            ],
        ),
        (
            diff(RUN, "whole.safetensors"),
            &["`a` of `whole.safetensors` is of type i64"],
        ),
        (
            diff(RUN, "d.safetensors"),
            &["is a weight delta, not weights", "runner delta apply"],
        ),
        (
            vec!["check", "init.toml"],
            &["is a weight delta, not weights"],
        ),
        (
            apply("same.safetensors", RUN),
            &["`same.safetensors` is not a weight delta"],
        ),
        (apply("cut.safetensors", RUN), &["`cut.safetensors`"]),
        (apply("newer.safetensors", RUN), &["of version 2"]),
        (apply("changed.safetensors", RUN), &["it is damaged"]),
        (
            diff(RUN, "results/spec/runs/base-s1/model/best.bpk"),
            &["the folder of the run"],
        ),
        (diff(RUN, "nowhere"), &["`nowhere` does not exist"]),
        (
            vec!["delta", "diff", RUN, RUN, "--out", "d.safetensors"],
            &["`d.safetensors` exists"],
        ),
        (
            vec!["delta", "diff", RUN, RUN, "--out", "d.pt"],
            &["`d.safetensors`"],
        ),
        (
            vec![
                "delta",
                "apply",
                "d.safetensors",
                "--to",
                RUN,
                "--out",
                "new.safetensors",
                "--scale",
                "0",
            ],
            &["expected a number other than 0"],
        ),
        (
            vec![
                "delta",
                "average",
                "d.safetensors",
                "d.safetensors",
                "--factor",
                "1",
                "--out",
                "new.safetensors",
            ],
            &["1 factor for 2 deltas"],
        ),
        (
            vec![
                "delta",
                "average",
                "d.safetensors",
                "--factor",
                "-1",
                "--out",
                "new.safetensors",
            ],
            &["expected a number above 0"],
        ),
    ];
    for (arguments, expected) in cases {
        let (code, _, said) = run(folder, &arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        for text in expected {
            assert!(said.contains(text), "{arguments:?}: {said}");
        }
        assert_eq!(tree(folder), before, "{arguments:?}");
    }
}

/// `--force` is for files of earlier calls, not for what a call reads, and not for those of a run.
#[test]
fn what_is_read_and_files_of_runs_are_not_replaced() {
    let folder = completed(IRIS, &["--set", "train.epochs=1"]);
    let folder = folder.path();
    let export = ["export", "weights", RUN, "--format", "safetensors", "--out"];
    done(folder, &[&export[..], &["a.safetensors"]].concat());
    done(folder, &[&export[..], &["b.safetensors"]].concat());
    let diff = ["delta", "diff", "a.safetensors", "b.safetensors", "--out"];
    done(folder, &[&diff[..], &["d.safetensors"]].concat());
    let best = format!("{RUN}/model/best.bpk");
    let events = format!("{RUN}/events.jsonl");
    let of_a_run = "is a file of the run `base-s1`, which would be damaged";
    for (arguments, out, reason) in [
        (
            &diff[..],
            "a.safetensors",
            "is data that this command reads",
        ),
        (
            &diff[..],
            "./b.safetensors",
            "is data that this command reads",
        ),
        (
            &APPLY[..],
            "d.safetensors",
            "is data that this command reads",
        ),
        (
            &["delta", "average", "d.safetensors", "--out"],
            "d.safetensors",
            "is data that this command reads",
        ),
        (
            &["export", "weights", RUN, "--format", "npz", "--out"],
            &best,
            of_a_run,
        ),
        (
            &["export", "jsonl", "results/spec", "--to"],
            &events,
            of_a_run,
        ),
    ] {
        let before = fs::read(folder.join(out)).unwrap();
        let (code, _, said) = run(folder, &[arguments, &[out, "--force"]].concat());
        assert_eq!(code, 2, "{out}: {said}");
        assert!(said.contains(reason), "{out}: {said}");
        assert!(fs::read(folder.join(out)).unwrap() == before, "{out}");
    }
}
