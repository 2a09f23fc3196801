use super::*;

/// The suggestions of a search whose trials have these results.
pub fn searched(text: &str, value: impl Fn(&Suggestion) -> TrialResult) -> Vec<Suggestion> {
    let document = Document::compose("spec.toml", text, None).ok().unwrap();
    let search = Search::of(&document).unwrap();
    let mut known: Vec<Suggestion> = Vec::new();
    loop {
        let results: Vec<_> = known.iter().map(&value).collect();
        let all = search.round(&known, &results).ok().unwrap();
        if all.is_empty() {
            return known;
        }
        known = all;
    }
}

/// The suggestions of a search of these numbers of trials, one after the other.
fn extended(text: &str, nums: &[usize]) -> Vec<Suggestion> {
    let mut known: Vec<Suggestion> = Vec::new();
    for num in nums {
        let text = text.replace("num_trials = 0", &format!("num_trials = {num}"));
        let document = Document::compose("spec.toml", &text, None).ok().unwrap();
        let search = Search::of(&document).unwrap();
        loop {
            let results: Vec<_> = known.iter().map(value).collect();
            let all = search.round(&known, &results).ok().unwrap();
            if all.is_empty() {
                break;
            }
            known = all;
        }
        assert_eq!(known.len(), *num);
    }
    known
}

fn value(suggestion: &Suggestion) -> TrialResult {
    let rate = suggestion.values["optimizer.learning_rate"].as_f64();
    TrialResult::of((rate.unwrap().log10() + 2.0).abs())
}

#[test]
fn a_search_that_is_extended_is_the_one_begun_with_that_number() {
    for method in ["tpe", "gp", "cma_es", "nsga2", "random", "sobol"] {
        let text = format!(
            r#"
[search]
type = "{method}"
num_trials = 0

[sweep.random.axes]
"optimizer.learning_rate" = {{ type = "log_uniform", min = 1e-4, max = 1.0 }}
"train.batch_size" = {{ type = "integer", min = 8, max = 64 }}
"#
        );
        let begun = extended(&text, &[30]);
        // Within the first round, and within, at the end and at the beginning of others.
        for nums in [
            &[3, 30][..],
            &[12, 30],
            &[14, 30],
            &[15, 21, 30],
            &[17, 19, 20, 30],
        ] {
            assert_eq!(extended(&text, nums), begun, "{method} {nums:?}");
        }
    }
}

#[test]
fn a_point_that_only_differs_in_unrecorded_digits_is_not_suggested() {
    // Two hundred values, as rounded.
    let text = r#"
[search]
type = "tpe"
num_trials = 90

[sweep.random.axes]
"optimizer.learning_rate" = { type = "log_uniform", min = 0.1, max = 0.102 }
"#;
    let rate = |suggestion: &Suggestion| suggestion.values["optimizer.learning_rate"].clone();
    let value = |suggestion: &Suggestion| {
        TrialResult::of((rate(suggestion).as_f64().unwrap() - 0.1004).abs())
    };
    let all = searched(text, value);
    let tried: BTreeSet<String> = all.iter().map(|s| rate(s).to_string()).collect();
    assert_eq!((all.len(), tried.len()), (90, 90));
}
