//! Things that lead back to themselves.

/// Says that the first of some things leads back to itself through the others, as in "`a` extends itself: `a` -> `b` ->
/// `a`". The names are those to display.
pub fn circle(names: &[String], verb: &str) -> String {
    match names {
        [] => String::new(),
        [only] => format!("{only} {verb} itself"),
        [first, ..] => format!("{first} {verb} itself: {} -> {first}", names.join(" -> ")),
    }
}
