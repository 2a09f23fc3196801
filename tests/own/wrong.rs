//! Parts that are wrong in ways of their own: where they panic, what they ask for, what they are called.

mod others;

use std::sync::atomic::{AtomicU32, Ordering};

use burn::module::Module;
use burn_runner::Runner;
use burn_runner::parts::{Device, Dims, DynTensor, Kind, LayerExample, LayerPart, Section, Unfit};
use others::{Clipped, Growing, LateMetric, LossMetric, NanLoss, NanMetric, Still};
use serde::{Deserialize, Serialize};

use crate::{folder, program, read};

const SPEC: &str = r#"
[data]
type = "iris"

[model]
layers = [{ type = "linear", out_features = 8 }, { type = "LAYER" }, { type = "linear" }]

[loss]
type = "cross_entropy"

[optimizer]
type = "sgd"
learning_rate = 1e-2

[task]
metrics = ["accuracy"]

[train]
epochs = 2
batch_size = 16
"#;

/// Functions of a layer, of which one is wrong; the others are those of a layer that does nothing.
trait Behaviour: std::fmt::Debug + Send + Sync + 'static {
    const NAME: &'static str;
    const EXAMPLES: &'static [LayerExample] = &[];

    fn settings(_: &mut Section<'_>) {}

    fn output_shape(inputs: &[Dims]) -> Dims {
        inputs[0].clone()
    }

    fn build() {}

    fn cost() -> u64 {
        0
    }

    fn forward(x: DynTensor) -> DynTensor {
        x
    }
}

#[derive(Module, Debug)]
struct Wrong<B: Behaviour> {
    #[module(skip)]
    _behaviour: std::marker::PhantomData<fn() -> B>,
}

#[derive(Serialize, Deserialize)]
struct Nothing {}

impl<B: Behaviour> LayerPart for Wrong<B> {
    const NAME: &'static str = B::NAME;
    const DOC: &'static str = "A layer that is wrong.";
    const EXAMPLES: &'static [LayerExample] = B::EXAMPLES;
    type Settings = Nothing;

    fn settings(section: &mut Section<'_>) -> Nothing {
        B::settings(section);
        Nothing {}
    }

    fn output_shape(_: &Nothing, inputs: &[Dims]) -> Result<Dims, Unfit> {
        Ok(B::output_shape(inputs))
    }

    fn new(_: &Nothing, _: &[Dims], _: &Device) -> Self {
        B::build();
        Self {
            _behaviour: std::marker::PhantomData,
        }
    }

    fn forward(&self, mut inputs: Vec<DynTensor>) -> DynTensor {
        B::forward(inputs.remove(0))
    }

    fn multiply_adds(_: &Nothing, _: &[Dims]) -> u64 {
        B::cost()
    }
}

macro_rules! layer {
    ($layer:ident $name:literal, $($function:tt)*) => {
        #[derive(Debug)]
        struct $layer;

        impl Behaviour for $layer {
            const NAME: &'static str = $name;
            $($function)*
        }
    };
}

static CALLS: AtomicU32 = AtomicU32::new(0);

layer!(InKeys "in_keys", fn settings(_: &mut Section<'_>) { panic!("deliberate") });
layer!(InNew "in_new", fn build() { panic!("deliberate") });
layer!(InCost "in_cost", fn cost() -> u64 { panic!("deliberate") });
layer!(Late "late", fn forward(x: DynTensor) -> DynTensor {
    // After the trial, in the last batch of an epoch, which is smaller.
    if matches!(x.dims()[0], 3..16) { panic!("deliberate") }
    x
});
layer!(Rank "rank", fn forward(x: DynTensor) -> DynTensor {
    let dims = x.dims();
    x.reshape(&[dims[0], 2, dims[1] / 2])
});
layer!(Batch "batch", fn forward(x: DynTensor) -> DynTensor {
    DynTensor::R2(x.r2().narrow(0, 0, 1))
});
layer!(Counts "counts", fn forward(x: DynTensor) -> DynTensor {
    DynTensor::R2(x.r2() + CALLS.fetch_add(1, Ordering::Relaxed) as f32)
});
layer!(Nan "nan", fn forward(x: DynTensor) -> DynTensor { DynTensor::R2(x.r2() * f32::NAN) });
layer!(Type "with_type", fn settings(s: &mut Section<'_>) {
    let _: Option<String> = s.field("type", Kind::Text, "A type.").optional();
});
layer!(Name "with_name", fn settings(s: &mut Section<'_>) {
    let _: Option<String> = s.field("name", Kind::Text, "A name.").optional();
});
layer!(Twice "twice", fn settings(s: &mut Section<'_>) {
    let _: Option<String> = s.field("a", Kind::Text, "A text.").optional();
    let _: Option<String> = s.field("a", Kind::Text, "A text.").optional();
});
layer!(Quoted "quoted", fn settings(s: &mut Section<'_>) {
    let _: Option<String> = s.field("my key", Kind::Text, "A text.").optional();
});
layer!(NoName "",);
layer!(Spaces "my layer",);
layer!(Example "example", const EXAMPLES: &'static [LayerExample] = &[(&[5], "{ type = 'example', of = 3 }")];);
layer!(Other "other", const EXAMPLES: &'static [LayerExample] = &[(&[5], "{ type = 'relu' }")];);

/// A program with parts that are wrong when they are used, or with one that cannot be installed.
pub fn with(program: &str) -> Option<Runner> {
    let runner = Runner::new();
    Some(match program {
        "wrong" => {
            let runner = runner.layer::<Wrong<InKeys>>().layer::<Wrong<InNew>>();
            let runner = runner.layer::<Wrong<InCost>>().layer::<Wrong<Late>>();
            let runner = runner.layer::<Wrong<Rank>>().layer::<Wrong<Batch>>();
            let runner = runner.layer::<Wrong<Counts>>().layer::<Wrong<Nan>>();
            let runner = runner.loss::<NanLoss>().metric::<LateMetric>();
            let runner = runner.metric::<NanMetric>().strategy::<Still>();
            runner.data::<Growing>()
        }
        "with_type" => runner.layer::<Wrong<Type>>(),
        "with_name" => runner.layer::<Wrong<Name>>(),
        "twice" => runner.layer::<Wrong<Twice>>(),
        "quoted" => runner.layer::<Wrong<Quoted>>(),
        "no_name" => runner.layer::<Wrong<NoName>>(),
        "spaces" => runner.layer::<Wrong<Spaces>>(),
        "same" => runner.layer::<Wrong<Late>>().layer::<Wrong<Late>>(),
        "clipped" => runner.optimizer::<Clipped>(),
        "loss_metric" => runner.metric::<LossMetric>(),
        "example" => runner.layer::<Wrong<Example>>(),
        "other_example" => runner.layer::<Wrong<Other>>(),
        _ => return None,
    })
}

/// Each is named in a message, with the exit code of a refusal or of a failed run; nothing else is printed as a panic.
pub fn is_named() {
    let relu = SPEC.replace("LAYER", "relu");
    let of_layer = |name: &str| SPEC.replace("LAYER", name);
    let edited = |from: &str, to: &str| {
        assert!(relu.contains(from));
        relu.replacen(from, to, 1)
    };
    for (spec, expected, said) in [
        (
            of_layer("in_keys"),
            2,
            "the layer type `in_keys` of this program panicked while reading its keys: deliberate",
        ),
        (
            of_layer("in_new"),
            2,
            "the layer type `in_new` of this program panicked",
        ),
        (
            of_layer("in_cost"),
            2,
            "the layer type `in_cost` of this program panicked",
        ),
        (
            of_layer("late"),
            1,
            "the layer type `late` of this program panicked in its forward pass: deliberate",
        ),
        (
            of_layer("rank"),
            1,
            "has the shape [2, 2, 4], and [2, 8] was promised",
        ),
        (
            of_layer("batch"),
            1,
            "has the shape [1, 8], and [2, 8] was promised",
        ),
        (
            of_layer("counts"),
            1,
            "the layer type `counts` of this program broke its promise: two passes",
        ),
        (of_layer("nan"), 1, "first in the output of layer `nan_1`"),
        (
            edited("cross_entropy", "nan_loss"),
            1,
            "first in the loss `nan_loss` of this program",
        ),
        (
            edited("\"accuracy\"", "\"accuracy\", \"late_metric\""),
            1,
            "the metric `late_metric` of this program panicked for the sums",
        ),
        (
            edited("\"accuracy\"", "\"accuracy\", \"nan_metric\""),
            1,
            "the metric train/nan_metric is infinite or NaN",
        ),
        (
            format!("{relu}\n[strategy]\ntype = \"still\"\n"),
            1,
            "would leave a parameter as it was at first",
        ),
        (
            edited("iris", "growing"),
            2,
            "gave other items than the run was planned with",
        ),
    ] {
        let folder = folder(&spec);
        let at = folder.path();
        let (code, printed, stderr) = program("wrong", at, &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, expected, "{said}: {printed}{stderr}");
        assert!(stderr.contains(said), "{said}: {printed}{stderr}");
        assert!(!stderr.contains("stack backtrace"), "{stderr}");
        assert!(!stderr.contains("thread '"), "{said}: {stderr}");
        if code == 1 {
            // Its record says the same.
            let events = read(&at.join("results/spec/runs/base-s1/events.jsonl"));
            assert!(events.contains("\"failed\""), "{events}");
        }
    }
}

/// Parts that cannot be part of a program.
pub fn is_refused() {
    let folder = folder(&SPEC.replace("LAYER", "relu"));
    for (which, said) in [
        (
            "with_type",
            "the layer type `with_type` cannot have the key `type`, which its table already has",
        ),
        (
            "with_name",
            "the layer type `with_name` cannot have the key `name`, which its table already has",
        ),
        ("twice", "the layer type `twice` reads the key `a` twice"),
        (
            "quoted",
            "the layer type `quoted` cannot have the key `my key`: use lowercase letters",
        ),
        (
            "no_name",
            "the layer type cannot be named ``: use lowercase letters",
        ),
        (
            "spaces",
            "the layer type cannot be named `my layer`: use lowercase letters",
        ),
        ("same", "the layer type `late` already exists"),
        (
            "clipped",
            "the optimizer `clipped` cannot have the key `learning_rate`",
        ),
        ("loss_metric", "the metric `loss` already exists"),
    ] {
        let (code, printed, stderr) = program(which, folder.path(), &["check", "spec.toml"]);
        assert!(
            code == 2 && stderr.contains(said),
            "{which} {code}: {printed}{stderr}"
        );
    }
    for (which, said) in [
        (
            "example",
            "its example `{ type = 'example', of = 3 }` is not valid",
        ),
        (
            "other_example",
            "its example `{ type = 'relu' }` ends with the type `relu`",
        ),
    ] {
        let arguments = [
            "parity",
            "--layers",
            "--devices",
            "flex,flex",
            "--only",
            which,
        ];
        let (code, printed, stderr) = program(which, folder.path(), &arguments);
        assert!(
            code == 2 && stderr.contains(said),
            "{which} {code}: {printed}{stderr}"
        );
    }
}
