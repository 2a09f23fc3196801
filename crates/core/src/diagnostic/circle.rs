//! Things that lead back to themselves.

/// Says that the first of some things leads back to itself over the others, as in "`a` extends itself: `a` -> `b` ->
/// `a`". The names are as they are shown.
pub fn circle(names: &[String], verb: &str) -> String {
    match names {
        [] => String::new(),
        [only] => format!("{only} {verb} itself"),
        [first, ..] => format!("{first} {verb} itself: {} -> {first}", names.join(" -> ")),
    }
}
