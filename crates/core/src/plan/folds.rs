//! Names of trials in a cross-validation: those that differ only in their fold are one trial of a report.

/// The key of the fold that is the valid split.
pub const FOLD: &str = "data.split.fold";

/// The name of a trial without its fold, such as `hidden=64` of `hidden=64,fold=0`. The part may be cut off, or a number
/// may follow it.
pub fn without_part(trial: &str, fold: u64) -> String {
    for label in ["fold", "split.fold", FOLD] {
        let part = format!("{label}={fold}");
        for (at, _) in trial.match_indices(&part) {
            let (before, after) = (&trial[..at], &trial[at + part.len()..]);
            let number = after.strip_prefix('.');
            let is_number = number.is_some_and(|n| n.chars().all(|c| c.is_ascii_digit()));
            let after = if is_number { "" } else { after };
            let is_part = (before.is_empty() || before.ends_with(','))
                && (after.is_empty() || after.starts_with(','));
            if is_part {
                let rest = if before.is_empty() {
                    after.trim_start_matches(',').to_owned()
                } else {
                    format!("{}{after}", &before[..before.len() - 1])
                };
                return if rest.is_empty() { "base".into() } else { rest };
            }
        }
    }
    trial.to_owned()
}

#[cfg(test)]
mod tests {
    use super::without_part;

    #[test]
    fn a_trial_is_named_without_its_fold() {
        let names = [
            "fold=1",
            "fold=1,hidden=[8,8]",
            "hidden=8,fold=1",
            "a=1,split.fold=1,b=2",
            "manifold=1",
        ];
        let named = names.map(|name| without_part(name, 1));
        assert_eq!(
            named,
            ["base", "hidden=[8,8]", "hidden=8", "a=1,b=2", "manifold=1"]
        );
        assert_eq!(without_part("fold=10", 1), "fold=10");
        assert_eq!(without_part("path=A.csv,fold=1.4", 1), "path=A.csv");
    }
}
