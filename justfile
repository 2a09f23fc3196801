# Everyday commands: https://just.systems. `just` lists them.

set shell := ["bash", "-euo", "pipefail", "-c"]

# list the recipes
default:
    @just --list

# the main job: 18 runs and a report
demo:
    cargo run --release -- run experiments/mnist_sweep.toml

# run the program: just run check experiments/mnist_sweep.toml
run *ARGS:
    cargo run --release -- {{ARGS}}

# fast feedback: types only
check:
    cargo check --all-targets

# format and lint
lint:
    cargo fmt
    cargo clippy --release --all-targets -- -D warnings

# all tests, or those whose name contains FILTER
test FILTER="":
    cargo test --release {{FILTER}}

# tests with every feature that needs no network to build
test-all:
    cargo test --release --features wgpu,parquet

# write new snapshots; read them before you commit
snapshots FILTER="":
    INSTA_UPDATE=always INSTA_FORCE_PASS=1 cargo test --release {{FILTER}}

# the generated schema
schema:
    cargo run --release -- schema

# licences and advisories (needs cargo-deny)
deny:
    cargo deny check

# kernels under AddressSanitizer; `just kernels miri` also under Miri (needs a nightly toolchain)
kernels *ARGS:
    tests/kernels.sh {{ARGS}}

# the benchmarks that decide a change to the training loop
bench:
    cargo bench --bench overhead -- mlp
    cargo bench --bench commands

# links, widths and examples of the manual
docs:
    .ci/docs.py --runner target/release/runner

# the manual as a book (needs mdbook)
book:
    mdbook serve --open

# the page that trains in a browser, as a folder of static files
web FOLDER="target/page":
    .ci/web --no-tests {{FOLDER}}

# everything that must hold before a change lands
ci:
    .ci/run
