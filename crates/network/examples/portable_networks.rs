//! For WebAssembly (`.ci/targets wasm`): how many digests of portable networks differ there from other processors'.

#[path = "../tests/portable/digests.rs"]
mod digests;
#[path = "../tests/portable/experiments.rs"]
mod experiments;

/// The number of digests; the first of those that differ, or that number; and how many do.
static RESULT: std::sync::OnceLock<[u32; 3]> = std::sync::OnceLock::new();

fn result() -> [u32; 3] {
    *RESULT.get_or_init(|| {
        let found = digests::all();
        let expected = include_str!("../tests/portable/expected.txt");
        let expected: String = expected.split_whitespace().collect();
        let is_wrong = |at: &usize| !digests::is_expected(*at, &found[*at], &expected);
        let wrong: Vec<usize> = (0..found.len()).filter(is_wrong).collect();
        let first = wrong.first().copied().unwrap_or(found.len());
        let num = found.len().max(expected.len() / 4);
        [num, first, wrong.len()].map(|number| number as u32)
    })
}

/// The number of digests.
#[unsafe(no_mangle)]
pub extern "C" fn num_digests() -> u32 {
    result()[0]
}

/// The first digest that is not the expected one.
#[unsafe(no_mangle)]
pub extern "C" fn first_wrong() -> u32 {
    result()[1]
}

/// The number of digests that are not the expected ones.
#[unsafe(no_mangle)]
pub extern "C" fn num_wrong() -> u32 {
    result()[2]
}
