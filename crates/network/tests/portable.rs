//! Portable arithmetic: every layer that it has, forward and backward, every loss, optimizer, schedule and initializer,
//! and whole experiments, with the same bits with all instructions, on any number of threads, and on every processor.
#![cfg(feature = "flex")]

#[path = "portable/digests.rs"]
mod digests;
#[path = "portable/experiments.rs"]
mod experiments;

use runner_network::{Instructions, limit};

/// One test, since the limit on instructions applies to the process.
#[test]
#[expect(clippy::disallowed_methods, reason = "the digests are beside the test")]
fn bits_are_those_of_every_processor() {
    let mut wrong = Vec::new();
    let mut first: Option<Vec<_>> = None;
    let mut seen = Vec::new();
    let all = [
        Instructions::Avx512,
        Instructions::Avx2,
        Instructions::Baseline,
    ];
    for instructions in all {
        let used = limit(instructions);
        // Other processors have one kind of instructions.
        if seen.contains(&used) {
            continue;
        }
        seen.push(used);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("threads");
            let found = pool.install(digests::all);
            let first = first.get_or_insert_with(|| found.clone());
            for (found, first) in found.iter().zip(first) {
                if found != first {
                    let name = &found.name;
                    wrong.push(format!("{name} with {used:?} on {threads} threads"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let found = first.expect("computed");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/portable/expected.txt");
    let expected = std::fs::read_to_string(path).expect("the expected digests");
    let expected: String = expected.split_whitespace().collect();
    let changed = found.iter().enumerate();
    let changed = changed.filter(|(at, found)| !digests::is_expected(*at, found, &expected));
    let changed: Vec<_> = changed.map(|(_, found)| found.name.trim()).collect();
    let short: Vec<String> = found.iter().map(digests::short).collect();
    let lines: Vec<String> = short.chunks(25).map(<[String]>::concat).collect();
    assert!(
        changed.is_empty() && expected.len() == 4 * found.len(),
        "{} of {} digests are not those in expected.txt:\n{}\nall are:\n{}",
        changed.len(),
        found.len(),
        changed.join("\n"),
        lines.join("\n")
    );
    assert!(found.len() > 150, "only {} digests", found.len());
}
