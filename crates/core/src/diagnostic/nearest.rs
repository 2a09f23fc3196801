//! Which word a person most likely meant.

/// The candidate that is most likely misspelled as `word`, if exactly one is close enough.
///
/// A wrong suggestion is worse than none, so only typing errors count: different case or separators, or about one
/// letter in five. Words with different digits, or with a part that is another word (`in_features` and `out_features`),
/// mean something else. `spec::remedy` knows the terms of other tools.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Longer words are not names, and comparing them is slow.
    const MAX_LEN: usize = 200;
    if word.len() > MAX_LEN {
        return None;
    }
    let plain = plain_word(word);
    let mut best: Option<(usize, &str)> = None;
    let mut is_tied = false;
    for candidate in candidates {
        let Some(distance) = slips(word, &plain, candidate) else {
            continue;
        };
        match best {
            Some((least, known)) if distance == least => is_tied |= known != candidate,
            Some((least, _)) if distance > least => {}
            _ => (best, is_tied) = (Some((distance, candidate)), false),
        }
    }
    best.filter(|_| !is_tied).map(|(_, candidate)| candidate)
}

/// A word in lower case without separators.
fn plain_word(word: &str) -> String {
    let letters = word.chars().filter(|c| !"_- ".contains(*c));
    letters.flat_map(char::to_lowercase).collect()
}

/// How many typing errors turn a candidate into the word; `None` if it is another word.
fn slips(word: &str, plain: &str, candidate: &str) -> Option<usize> {
    let theirs = plain_word(candidate);
    if plain == theirs && !plain.is_empty() {
        return Some(0);
    }
    let digits = |word: &str| -> String { word.chars().filter(char::is_ascii_digit).collect() };
    let allowed = |len: usize| if len < 3 { 0 } else { (len / 5).max(1) };
    let num = plain.chars().count().max(theirs.chars().count());
    if plain.len().abs_diff(theirs.len()) > allowed(num) || digits(plain) != digits(&theirs) {
        return None;
    }
    let word = word.to_lowercase();
    let is_part = |c: char| "_.-/,= ".contains(c);
    let parts: Vec<_> = word.split(is_part).zip(candidate.split(is_part)).collect();
    if word.split(is_part).count() == candidate.split(is_part).count() {
        let is_other = |(a, b): &(&str, &str)| {
            strsim::damerau_levenshtein(a, &b.to_lowercase()) > allowed(a.len().max(b.len()) + 2)
        };
        if parts.iter().any(is_other) {
            return None;
        }
    }
    let distance = strsim::damerau_levenshtein(plain, &theirs);
    (distance <= allowed(num)).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not_offered() {
        let found = |word, all: &[&'static str]| nearest(word, all.iter().copied());
        let keys = [
            "learning_rate",
            "momentum",
            "out_features",
            "sweep",
            "min_size",
        ];
        assert_eq!(found("learnig_rate", &keys), Some("learning_rate"));
        assert_eq!(found("learningRate", &keys), Some("learning_rate"));
        assert_eq!(found("mometum", &keys), Some("momentum"));
        assert_eq!(found("in_features", &keys), None);
        assert_eq!(found("seed", &keys), None);
        assert_eq!(found("max_size", &keys), None);
        assert_eq!(found("swish", &["mish", "silu"]), None);
        assert_eq!(
            found("LeakyReLU", &["leaky_relu", "relu"]),
            Some("leaky_relu")
        );
        assert_eq!(found("gpu", &["cpu", "wgpu"]), None, "two are as near");
        assert_eq!(found("conv4d", &["conv1d", "conv2d"]), None);
        assert_eq!(found("lr", &["lp"]), None);
        assert_eq!(found("relo", &["relu"]), Some("relu"));
    }
}
