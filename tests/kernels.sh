#!/usr/bin/env bash
# Tests the kernels, which have `unsafe` code, with tools that find wrong accesses to memory: under AddressSanitizer with the
# toolchain in use, and, with `miri`, under Miri, which needs a nightly toolchain and takes much longer:
# rustup toolchain install nightly --component miri,rust-src
set -euo pipefail
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n 's/^host: //p')
runtime="$(rustc --print sysroot)/lib/rustlib/$host/lib"

if compgen -G "$runtime/librustc-*_rt.asan.a" >/dev/null; then
    # The option is not stable yet. Products of `gemm` are checked too: its code is generic, or built here.
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address ${RUSTFLAGS:-}" \
        cargo test --release -p burn-runner-kernels --lib --target "$host"
else
    echo "this toolchain has no AddressSanitizer for $host: kernels are not checked by it"
fi

if [ "${1:-}" = miri ]; then
    # Threads of rayon outlive a test, what it queues by does not follow Stacked Borrows, and proptest asks for a folder.
    MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-tree-borrows ${MIRIFLAGS:-}" \
        cargo +nightly miri test -p burn-runner-kernels --lib
fi
