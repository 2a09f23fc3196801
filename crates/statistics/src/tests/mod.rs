//! The module as a whole: published examples, verdicts, and properties for any input.

mod properties;
mod readings;
mod verdicts;

use super::*;

/// Hours of sleep gained with two drugs by ten patients (Student, 1908), as R has them in its data set `sleep`.
const DRUG_1: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
const DRUG_2: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

fn keyed(values: &[f64]) -> Vec<(u64, f64)> {
    (1..).zip(values.iter().copied()).collect()
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-8 * b.abs().max(1e-3), "{a} is not {b}");
}

#[test]
fn students_sleep_data() {
    // The numbers of R's t.test(extra ~ group) with and without pairs, digits beyond its own by scipy 1.17.1.
    let pairs = Pairs::of(&keyed(&DRUG_1), &keyed(&DRUG_2)).unwrap();
    let paired = paired_t_test(&pairs.differences).unwrap();
    close(paired.statistic, -4.062127683382037);
    assert_eq!(paired.df, Some(9.0));
    close(paired.p, 0.002832890197384273);
    let interval = Interval::student(&pairs.differences, 0.95).unwrap();
    close(interval.low, -2.459885763276983);
    close(interval.high, -0.7001142367230175);
    close(cohens_d_z(&pairs.differences).unwrap(), -1.2845575625910546);

    let welch = welch_t_test(&DRUG_1, &DRUG_2).unwrap();
    close(welch.statistic, -1.8608134674868526);
    close(welch.df.unwrap(), 17.776473516178488);
    close(welch.p, 0.0793941401873583);
    let interval = welch_interval(&DRUG_1, &DRUG_2, 0.95).unwrap();
    close(interval.low, -3.3654832307117104);
    close(interval.high, 0.20548323071171137);
    // d = -0.8321811 times J = 0.9576464, by scipy's gamma function.
    close(hedges_g(&DRUG_1, &DRUG_2).unwrap(), -0.7969352391911217);

    let one = Interval::student(&DRUG_1, 0.95).unwrap();
    close(one.low, -0.5297804135262321);
    close(one.high, 2.029780413526232);
    // All differences but one 0 point the same way: 4 of 1024.
    assert_eq!(sign_flip(&pairs.differences).unwrap().p, 4.0 / 1024.0);
}

#[test]
fn a_sample_is_described() {
    let description = Description::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
    assert_eq!(
        (description.n, description.mean, description.median),
        (8, 5.0, 4.5)
    );
    assert_eq!((description.minimum, description.maximum), (2.0, 9.0));
    close(description.sd.unwrap(), (32.0_f64 / 7.0).sqrt());
    let one = Description::of(&[0.1]).unwrap();
    assert_eq!((one.n, one.mean, one.sd, one.median), (1, 0.1, None, 0.1));
    // Equal values have no spread, even if their rounded mean differs.
    let equal = Description::of(&[0.1; 3]).unwrap();
    assert_eq!((equal.mean, equal.sd), (0.1, Some(0.0)));
    // Spreads whose squares overflow.
    close(
        Description::of(&[1e-200, 3e-200]).unwrap().sd.unwrap() * 1e200,
        2.0_f64.sqrt(),
    );
    close(
        Description::of(&[1e200, 3e200]).unwrap().sd.unwrap() * 1e-200,
        2.0_f64.sqrt(),
    );
    assert_eq!(
        Description::of(&[]),
        Err(Refusal::TooFew { n: 0, needed: 1 })
    );
    assert_eq!(Description::of(&[1.0, f64::NAN]), Err(Refusal::NotFinite));
    assert_eq!(Description::of(&[f64::MAX, 1e308]), Err(Refusal::NotFinite));
}

#[test]
fn intervals_refuse_what_they_cannot_do() {
    let student = |values: &[f64]| Interval::student(values, 0.95);
    assert_eq!(student(&[1.0]), Err(Refusal::TooFew { n: 1, needed: 2 }));
    assert_eq!(student(&[0.1; 3]), Err(Refusal::NoSpread));
    assert_eq!(student(&[1.0, f64::INFINITY]), Err(Refusal::NotFinite));
    for level in [0.0, 1.0, -1.0, 2.0, f64::NAN] {
        assert_eq!(
            Interval::student(&[1.0, 2.0], level),
            Err(Refusal::BadLevel)
        );
    }
    // Two values: 1.5 ± 12.706 / 2.
    let two = student(&[1.0, 2.0]).unwrap();
    close(two.high, 1.5 + 0.5 * 12.706204736174694);
    assert!(two.contains(1.5) && !two.contains(8.0));
    assert_eq!(
        welch_t_test(&[1.0], &[1.0, 2.0]),
        Err(Refusal::TooFew { n: 1, needed: 2 })
    );
    assert_eq!(
        welch_t_test(&[1.0, 1.0], &[2.0, 2.0]),
        Err(Refusal::NoSpread)
    );
    assert_eq!(hedges_g(&[1.0, 1.0], &[2.0, 2.0]), Err(Refusal::NoSpread));
    // One constant sample is fine: its variance is 0.
    close(
        welch_t_test(&[1.0, 2.0], &[3.0, 3.0]).unwrap().df.unwrap(),
        1.0,
    );
}
