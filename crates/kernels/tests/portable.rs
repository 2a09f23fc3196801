//! Portable kernels have the same bits with all instructions, on any number of threads, and on every processor.

#[path = "portable/digests.rs"]
mod digests;

use runner_kernels::{Instructions, limit};

/// One test, since the limit on instructions applies to the process.
#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn bits_are_those_of_every_processor() {
    let all = [
        Instructions::Baseline,
        Instructions::Avx2,
        Instructions::Avx512,
    ];
    let mut wrong = Vec::new();
    for instructions in all {
        let used = limit(instructions);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("threads");
            for (name, compute, expected) in digests::ALL {
                let found = pool.install(compute);
                if found != expected {
                    wrong.push(format!(
                        "{name} with {used:?} on {threads} threads: {found:#018x}, not {expected:#018x}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
