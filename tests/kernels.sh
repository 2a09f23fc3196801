#!/usr/bin/env bash
# Tests the kernels, which have `unsafe` code, under Miri and under AddressSanitizer. Needs a nightly toolchain with Miri:
# rustup toolchain install nightly --component miri,rust-src
set -euo pipefail
cd "$(dirname "$0")/.."
# Threads of rayon outlive a test, what it queues by does not follow Stacked Borrows, and proptest asks for a folder.
MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-tree-borrows ${MIRIFLAGS:-}" \
    cargo +nightly miri test -p burn-runner-kernels --lib
RUSTFLAGS="-Zsanitizer=address ${RUSTFLAGS:-}" \
    cargo +nightly test --release -p burn-runner-kernels --lib --target "$(rustc -vV | sed -n 's/^host: //p')"
