//! Mixed images, compared with torchvision's, as recorded by `tests/golden/augment.py`.

use super::*;
use crate::spec::data::MixSpec;
use serde_json::Value as Json;

fn spec(mixup: Option<[f64; 2]>, cutmix: Option<[f64; 2]>) -> AugmentSpec {
    let of = |[alpha, probability]: [f64; 2]| MixSpec { alpha, probability };
    AugmentSpec {
        mixup: mixup.map(of),
        cutmix: cutmix.map(of),
        ..AugmentSpec::default()
    }
}

fn numbers<T: serde::de::DeserializeOwned>(json: &Json) -> T {
    serde_json::from_value(json.clone()).unwrap()
}

#[test]
fn mixed_images_are_those_of_torchvision() {
    let golden = include_str!("../../../../../../tests/golden/augment.json");
    let golden: Json = serde_json::from_str(golden).unwrap();
    let cases = golden["mixed"].as_array().unwrap();
    assert!(cases.len() > 8);
    for case in cases {
        let shape: [usize; 3] = numbers(&case["shape"]);
        let (mut image, other): (Vec<f32>, Vec<f32>) =
            (numbers(&case["image"]), numbers(&case["other"]));
        let drawn = case["drawn"].as_f64().unwrap();
        let mix = match case["center"].as_array() {
            None => Mix {
                kept: drawn,
                cut: None,
            },
            Some(_) => Mix::cut(drawn, numbers(&case["center"]), [shape[1], shape[2]]),
        };
        mix.apply(&mut image, &other, &shape);
        let wanted: Vec<f32> = numbers(&case["mixed"]);
        let errors = image.iter().zip(&wanted).map(|(a, b)| (a - b).abs());
        assert!(errors.fold(0.0, f32::max) < 1e-6, "{case}");
        assert!(
            (mix.kept - case["kept"].as_f64().unwrap()).abs() < 1e-6,
            "{case}"
        );
    }
}

#[test]
fn shares_are_of_the_beta_distribution() {
    for alpha in [0.1, 0.4, 1.0, 3.0] {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let shares: Vec<f64> = (0..20_000).map(|_| beta(alpha, &mut rng)).collect();
        let mean = shares.iter().sum::<f64>() / 20_000.0;
        let deviation = |share: &f64| (share - 0.5).powi(2);
        let variance = shares.iter().map(deviation).sum::<f64>() / 20_000.0;
        let wanted = 1.0 / (4.0 * (2.0 * alpha + 1.0));
        assert!((mean - 0.5).abs() < 0.012, "{alpha}: {mean}");
        assert!(
            (variance / wanted - 1.0).abs() < 0.03,
            "{alpha}: {variance}, {wanted}"
        );
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
    }
}

#[test]
fn a_batch_has_one_of_the_methods() {
    let count = |spec: &AugmentSpec| {
        let drawn = (0..1000).map(|batch| Mix::draw(spec, (1, 1), batch, [8, 8]));
        let mixed: Vec<Mix> = drawn.flatten().collect();
        let cut = mixed.iter().filter(|mix| mix.cut.is_some()).count();
        [mixed.len() - cut, cut]
    };
    assert_eq!(count(&spec(None, None)), [0, 0]);
    assert_eq!(count(&spec(Some([0.2, 1.0]), None)), [1000, 0]);
    assert_eq!(count(&spec(None, Some([1.0, 1.0]))), [0, 1000]);
    let [mixed, cut] = count(&spec(Some([0.2, 0.25]), Some([1.0, 0.5])));
    assert!(
        (200..300).contains(&mixed) && (440..560).contains(&cut),
        "{mixed}, {cut}"
    );
    let one = spec(Some([0.2, 1.0]), None);
    let draw = |seed, epoch, batch| Mix::draw(&one, (seed, epoch), batch, [8, 8]);
    assert_eq!(draw(1, 2, 3), draw(1, 2, 3));
    for other in [draw(2, 2, 3), draw(1, 3, 3), draw(1, 2, 4)] {
        assert_ne!(draw(1, 2, 3), other);
    }
}

#[test]
fn an_item_is_mixed_with_the_one_before_it_in_its_batch() {
    let partners: Vec<usize> = (0..7).map(|at| partner(at, 3, 7)).collect();
    assert_eq!(partners, [2, 0, 1, 5, 3, 4, 6]);
}
