//! Convolutions by runner's kernels against Burn's own, on `flex` in f32: a whole epoch of the small CNN through runner,
//! and forward and backward passes of blocks of larger networks.
//!
//! Both are measured alternately in one process, several times, of which the fastest counts. The rate of a matrix
//! product is measured too, as a reference for the processor's current speed. Processor time is that of all threads,
//! divided by their number: on a busy machine, this is the time that an idle one would take. Run with `cargo bench
//! --bench convolution [-- cnn | residual | separable | parts]`; `convolution_torch.py` beside this file measures the
//! same with PyTorch. See `benches/README.md`.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a benchmark prints its figures and exits"
)]

#[allow(dead_code)] // Benches share it, and this one uses a part.
mod support;

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use burn::module::Module;
use burn::nn::conv::Conv2dConfig;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Distribution, Tensor, activation};
use burn_runner::plan::RunPlan;
use burn_runner::spec::backend::Kernels;
use mimalloc::MiMalloc;
use runner_network::convolution::Conv2d;
use support::{by_runner, is_wanted, planned, wanted};

/// Counts live bytes and their peak.
struct Counted;

static BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to `MiMalloc` unchanged; counting touches no block.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's contract is passed on.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's contract is passed on.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract is passed on.
        unsafe { MiMalloc.dealloc(block, layout) }
    }
}

fn count(size: usize) {
    let bytes = BYTES.fetch_add(size, Ordering::Relaxed) + size;
    PEAK.fetch_max(bytes, Ordering::Relaxed);
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// The cost of a piece of work.
#[derive(Clone, Copy)]
struct Cost {
    secs: f64,
    /// Of all threads, divided by their number.
    processor_secs: f64,
    peak_bytes: usize,
}

impl Cost {
    const NONE: Self = Self {
        secs: f64::MAX,
        processor_secs: f64::MAX,
        peak_bytes: usize::MAX,
    };

    fn of(work: impl FnOnce()) -> Self {
        let before = BYTES.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let (started, processor) = (Instant::now(), processor_secs());
        work();
        Self {
            secs: started.elapsed().as_secs_f64(),
            processor_secs: (processor_secs() - processor) / rayon::current_num_threads() as f64,
            peak_bytes: PEAK.load(Ordering::Relaxed) - before,
        }
    }

    fn least(self, other: Self) -> Self {
        Self {
            secs: self.secs.min(other.secs),
            processor_secs: self.processor_secs.min(other.processor_secs),
            peak_bytes: self.peak_bytes.min(other.peak_bytes),
        }
    }
}

/// Processor time of this process in seconds, on all cores.
fn processor_secs() -> f64 {
    #[cfg(unix)]
    {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is a valid place for the result.
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    }
    #[cfg(not(unix))]
    0.0
}

const KERNELS: [Kernels; 2] = [Kernels::Fast, Kernels::Reference];
const GEMM: usize = 1024;

/// Measures work with both kernels, and a matrix product, alternately; `flops` are those of the convolutions.
fn compare(name: &str, flops: f64, rounds: usize, mut work: impl FnMut(Kernels) -> Cost) {
    let device = Device::flex();
    let matrix = || Tensor::<2>::random([GEMM, GEMM], Distribution::Default, &device);
    let (a, b) = (matrix(), matrix());
    let mut costs = [Cost::NONE; 2];
    let mut gemm = Cost::NONE;
    for _ in 0..rounds {
        for (cost, kernels) in costs.iter_mut().zip(KERNELS) {
            *cost = cost.least(work(kernels));
        }
        for _ in 0..3 {
            gemm = gemm.least(Cost::of(|| drop(a.clone().matmul(b.clone()))));
        }
    }
    let [ours, burns] = costs;
    let gemm_flops = 2.0 * (GEMM as f64).powi(3);
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    println!(
        "{name}\n  wall: runner {:.4} s, Burn {:.4} s, ratio {:.3}; processor: runner {:.4} s, Burn {:.4} s, ratio {:.3}",
        ours.secs,
        burns.secs,
        ours.secs / burns.secs,
        ours.processor_secs,
        burns.processor_secs,
        ours.processor_secs / burns.processor_secs,
    );
    println!(
        "  GFLOP/s by wall and processor: runner {:.0} {:.0}, Burn {:.0} {:.0}, matrix product {:.0} {:.0}; runner's share of it {:.2} {:.2}",
        flops / ours.secs / 1e9,
        flops / ours.processor_secs / 1e9,
        flops / burns.secs / 1e9,
        flops / burns.processor_secs / 1e9,
        gemm_flops / gemm.secs / 1e9,
        gemm_flops / gemm.processor_secs / 1e9,
        flops / gemm_flops * gemm.secs / ours.secs,
        flops / gemm_flops * gemm.processor_secs / ours.processor_secs,
    );
    println!(
        "  peak memory: runner {:.1} MiB, Burn {:.1} MiB",
        mib(ours.peak_bytes),
        mib(burns.peak_bytes)
    );
}

/// An epoch of the CNN of 8,000 images, without validation.
fn epoch(plan: &RunPlan, kernels: Kernels) -> Cost {
    let mut run = plan.clone();
    run.kernels = kernels;
    let mut secs = Vec::new();
    let cost = Cost::of(|| secs = by_runner(&run));
    Cost {
        secs: secs.iter().copied().fold(f64::MAX, f64::min),
        // Including the start and validation, which are not timed separately.
        processor_secs: cost.processor_secs / run.train.epochs as f64,
        ..cost
    }
}

/// Convolutions one after another, over 64 items of 64 channels of 32x32.
#[derive(Module, Debug)]
struct Block {
    convolutions: Vec<Conv2d>,
    #[module(skip)]
    is_residual: bool,
}

const SHAPE: [usize; 4] = [64, 64, 32, 32];

impl Block {
    /// Kernel sizes with groups.
    fn new(sizes: &[(usize, usize)], is_residual: bool, kernels: Kernels) -> Self {
        let device = Device::flex().autodiff();
        device.seed(1);
        let convolutions = sizes.iter().map(|(size, groups)| {
            let config = Conv2dConfig::new([64, 64], [*size; 2]).with_groups(*groups);
            let options = ConvOptions::new([1, 1], [size / 2; 2], [1, 1], *groups);
            Conv2d::new(&config, options, (kernels, Default::default()), &device)
        });
        Self {
            convolutions: convolutions.collect(),
            is_residual,
        }
    }

    fn step(&self, x: &Tensor<4>) {
        let input = x.clone().require_grad();
        let last = self.convolutions.len() - 1;
        let mut x = input.clone();
        for (at, convolution) in self.convolutions.iter().enumerate() {
            x = convolution.forward(x);
            if at == last && self.is_residual {
                x = x + input.clone();
            }
            if last > 0 {
                x = activation::relu(x);
            }
        }
        let gradients = x.sum().backward();
        assert!(input.grad(&gradients).is_some());
    }
}

fn block(name: &str, sizes: &[(usize, usize)], is_residual: bool) {
    let blocks = KERNELS.map(|kernels| Block::new(sizes, is_residual, kernels));
    let device = Device::flex().autodiff();
    let x = Tensor::<4>::random(SHAPE, Distribution::Default, &device);
    let terms: usize = sizes
        .iter()
        .map(|(size, groups)| size * size * 64 / groups)
        .sum();
    // Forward, and as many operations again for the gradients of input and weights.
    let flops = 3.0 * 2.0 * (terms * SHAPE.iter().product::<usize>()) as f64;
    compare(name, flops, 8, |kernels| {
        Cost::of(|| blocks[usize::from(kernels == Kernels::Reference)].step(&x))
    });
}

fn main() {
    let wanted = wanted();
    let runs = |name: &str| is_wanted(name, &wanted);
    if runs("cnn") {
        let plan = planned("cnn", "mnist", 2, "flex");
        // Convolutions of an item, forward and backward; the first needs no gradient of its input.
        let (first, second) = (26 * 26 * 9 * 32, 24 * 24 * 9 * 32 * 64);
        let flops = 2.0 * (2 * first + 3 * second) as f64 * plan.data.num_train as f64;
        compare("cnn, an epoch", flops, 3, |kernels| epoch(&plan, kernels));
    }
    if runs("residual") {
        block("residual block: 3x3, 3x3, sum", &[(3, 1), (3, 1)], true);
    }
    if runs("separable") {
        block(
            "separable block: 3x3 of each channel, 1x1",
            &[(3, 64), (1, 1)],
            false,
        );
    }
    if runs("parts") {
        block("3x3 alone", &[(3, 1)], false);
        block("3x3 of each channel alone", &[(3, 64)], false);
        block("1x1 alone", &[(1, 1)], false);
    }
}
