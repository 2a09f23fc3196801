//! Layers by runner's kernels, on Burn's backend `flex` in 32 bits.
//!
//! Parameters are those of Burn's modules, so that a checkpoint does not know which kernels wrote it. Every function here
//! says by its result whether it could compute what it was asked for; where it could not, the caller goes to Burn.

pub mod activation;
pub mod attention;
pub mod embedding;
pub mod entropy;
pub mod join;
pub mod linear;
pub mod norm;
mod operation;
pub mod optimizer;
pub mod pool;
pub mod recurrent;
#[cfg(test)]
mod tests;
pub mod transpose;

#[cfg(test)]
thread_local! {
    /// How many operations this thread has called.
    static CALLS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
fn count() {
    CALLS.with(|calls| calls.set(calls.get() + 1));
}
