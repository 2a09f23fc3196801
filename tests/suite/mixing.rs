//! Images that are mixed, and colors and labels that are changed in training.

use burn_runner::data::{self, Loaded};

use super::edit::Edit;
use super::support::{completed, folder_with, goes_on, numbers, plan, run, summary};

/// A classifier of digits with every change that applies to gray images.
const DIGITS: &str = r#"
checkpoint = { every_steps = 5 }
model = { type = "mlp", hidden = [32] }
optimizer = { type = "adam", learning_rate = 3e-3 }
train = { epochs = 6, batch_size = 64, micro_batch_size = 24 }

[data]
type = "digits"
label_noise = 0.1

[data.augment]
shift = 0.1
resized_crop = { scale = [0.8, 1.0] }
brightness = 0.3
contrast = 0.3
mixup = { alpha = 0.4 }
cutmix = { alpha = 1.0 }
"#;

#[test]
fn mixed_images_resume_exactly() {
    let straight = completed(DIGITS, &[]);
    let stopped = folder_with(DIGITS);
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@57"];
    run(stopped.path(), &arguments);
    goes_on(stopped.path());
    assert_eq!(numbers(straight.path()), numbers(stopped.path()));
    let accuracy = |split: &str| {
        let name = format!("last/{split}/accuracy");
        summary(straight.path(), "base-s1")["metrics"][name]
            .as_f64()
            .unwrap()
    };
    // Digits that are not mixed are recognized, and mixed ones are harder.
    assert!(accuracy("valid") > 0.75, "{}", accuracy("valid"));
    assert!(accuracy("train") < accuracy("valid"));
    let plain = completed(
        &DIGITS.edit("mixup = { alpha = 0.4 }\ncutmix = { alpha = 1.0 }\n", ""),
        &[],
    );
    assert_ne!(numbers(straight.path()), numbers(plain.path()));
}

#[test]
fn labels_of_train_are_changed_and_no_others() {
    let load = |noise: &str| -> Loaded {
        let spec = DIGITS.edit("label_noise = 0.1", noise);
        let (planned, _) = plan("spec.toml", &spec).unwrap();
        let shown = planned.runs[0].data.in_words();
        let expected = "20 % of the labels of train changed";
        assert_eq!(shown.contains(expected), noise.ends_with("0.2"), "{shown}");
        data::load(&planned.runs[0].data, &|_, _| ()).unwrap()
    };
    let (noisy, plain) = (load("label_noise = 0.2"), load("label_noise = 0.0"));
    let classes = |split: &data::serve::Split| {
        let all: Vec<u32> = (0..split.num_items() as u32).collect();
        (split.classes(&all), split.serve(&all, None).targets)
    };
    assert_eq!(classes(&noisy.valid), classes(&plain.valid));
    let ((now, served), (before, _)) = (classes(&noisy.train), classes(&plain.train));
    assert_eq!(served, data::TargetValues::Classes(now.clone()));
    let num_changed = now.iter().zip(&before).filter(|(a, b)| a != b).count();
    assert_eq!(num_changed, (0.2 * before.len() as f64).round() as usize);
    assert_eq!(noisy.digests, plain.digests);
}
