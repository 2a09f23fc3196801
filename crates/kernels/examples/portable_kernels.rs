//! For WebAssembly (`.ci/targets wasm`): how many portable kernels differ there from every other processor.

#[path = "../tests/portable/digests.rs"]
mod digests;

fn is_wrong(row: &digests::Row) -> bool {
    (row.1)() != row.2
}

/// The number of digests.
#[unsafe(no_mangle)]
pub extern "C" fn num_digests() -> u32 {
    digests::ALL.len() as u32
}

/// The first digest that is not the expected one.
#[unsafe(no_mangle)]
pub extern "C" fn first_wrong() -> u32 {
    let first = digests::ALL.iter().position(is_wrong);
    first.unwrap_or(digests::ALL.len()) as u32
}

/// The number of digests that are not the expected ones.
#[unsafe(no_mangle)]
pub extern "C" fn num_wrong() -> u32 {
    digests::ALL.iter().filter(|row| is_wrong(row)).count() as u32
}
