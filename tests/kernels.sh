#!/usr/bin/env bash
# Tests the kernels of convolutions, which have `unsafe` code, under Miri and under AddressSanitizer. They know nothing of
# Burn, so that a package of them alone is enough: whole, neither could be run in an hour. Needs a nightly toolchain with
# Miri: rustup toolchain install nightly --component miri,rust-src
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
package="${1:-$(mktemp -d)}"
mkdir -p "$package/src"
cp "$root/Cargo.lock" "$package/"
cat > "$package/Cargo.toml" <<EOF
[package]
name = "kernels"
version = "0.1.0"
edition = "2024"

[workspace]

[dependencies]
gemm = { version = "0.19", default-features = false, features = ["std", "rayon", "x86-v4"] }
rayon = "1.12"

[dev-dependencies]
proptest = { version = "1", default-features = false, features = ["std"] }
EOF
cat > "$package/src/lib.rs" <<EOF
#[path = "$root/src/train/convolution/kernels/mod.rs"]
pub mod kernels;
EOF
cd "$package"
# Threads of rayon outlive a test, what it queues by does not follow Stacked Borrows, and proptest asks for a folder.
MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-tree-borrows ${MIRIFLAGS:-}" cargo +nightly miri test --lib
RUSTFLAGS="-Zsanitizer=address ${RUSTFLAGS:-}" cargo +nightly test --release --lib --target "$(rustc -vV | sed -n 's/^host: //p')"
