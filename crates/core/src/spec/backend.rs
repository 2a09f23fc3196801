//! `[backend]`: the device and the precision.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::remedy;
use super::section::{Choice, Section, by_name, choices};
use crate::diagnostic::Reason;

/// The `[backend]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendSpec {
    /// The device; none for the best available one, which the file calls `auto`.
    pub device: Option<DeviceName>,
    /// The floating-point type.
    pub precision: Precision,
    /// Whether an unavailable device is an error; otherwise its runs are skipped.
    pub required: bool,
    /// Which kernels compute layers and losses.
    pub kernels: Kernels,
    /// How products and sums are rounded.
    pub arithmetic: Arithmetic,
    /// Whether the file calls the kernels by their former name, `conv`.
    pub has_former_name: bool,
}

/// A device by its backend and its index among that backend's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DeviceName {
    /// The backend.
    pub backend: Backend,
    /// The index; 0 if not set.
    pub index: u16,
}

choices! {
    /// A backend of Burn.
    pub enum Backend {
        Flex "flex" "Pure-Rust kernels on the CPU.",
        Wgpu "wgpu" "Any GPU or software driver through Vulkan, Metal or DX12.",
        Vulkan "vulkan" "Vulkan, with kernels as SPIR-V.",
        Metal "metal" "Apple's Metal.",
        Cuda "cuda" "NVIDIA GPUs.",
        Rocm "rocm" "AMD GPUs.",
        Cpu "cpu" "CubeCL kernels on the CPU, through LLVM.",
    }
}

impl Backend {
    /// Whether this build has the backend.
    pub fn is_compiled(self) -> bool {
        match self {
            Backend::Flex => cfg!(feature = "flex"),
            Backend::Wgpu => cfg!(feature = "wgpu"),
            Backend::Vulkan => cfg!(feature = "vulkan"),
            Backend::Metal => cfg!(feature = "metal"),
            Backend::Cuda => cfg!(feature = "cuda"),
            Backend::Rocm => cfg!(feature = "rocm"),
            Backend::Cpu => cfg!(feature = "cpu"),
        }
    }

    /// Whether it computes on the host's processor, so that the run's memory is that of the process.
    pub fn is_host(self) -> bool {
        matches!(self, Backend::Flex | Backend::Cpu)
    }
}

/// Names of the backends in this build.
pub fn compiled() -> Vec<&'static str> {
    let all = Backend::ALL.iter();
    all.filter(|(backend, _, _)| backend.is_compiled())
        .map(|(_, name, _)| *name)
        .collect()
}

/// The host's processor, the default of every build.
pub const FLEX: DeviceName = DeviceName {
    backend: Backend::Flex,
    index: 0,
};

/// The first GPU of any kind, which is WebGPU in a browser.
pub const WGPU: DeviceName = DeviceName {
    backend: Backend::Wgpu,
    index: 0,
};

impl DeviceName {
    /// The environment variable that makes any GPU of the backend the device of this name, for a process; none if the
    /// backend has no such variable, or the name has an index.
    pub fn visibility(self) -> Option<&'static str> {
        match (self.backend, self.index) {
            (Backend::Cuda, 0) => Some("CUDA_VISIBLE_DEVICES"),
            (Backend::Rocm, 0) => Some("HIP_VISIBLE_DEVICES"),
            _ => None,
        }
    }
}

/// The name of the best available device in files.
const AUTO: &str = "auto";

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            0 => f.write_str(self.backend.name()),
            index => write!(f, "{}:{index}", self.backend.name()),
        }
    }
}

impl From<DeviceName> for String {
    fn from(name: DeviceName) -> Self {
        name.to_string()
    }
}

impl FromStr for DeviceName {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Reason> {
        let (name, index) = text.split_once(':').unwrap_or((text, "0"));
        if let (Some(backend), Ok(index)) = (by_name(name), index.parse()) {
            return Ok(Self { backend, index });
        }
        let names = || Backend::ALL.iter().map(|(_, name, _)| *name);
        let meant = remedy::for_value("argument.device", name, names());
        let meant = meant.map_or(String::new(), |answer| format!("; {answer}"));
        let names: Vec<_> = names().collect();
        Err(Reason(format!(
            "`{text}` is not a device: expected one of {}, with an index where there are several, such as `wgpu:1`{meant}",
            names.join(", ")
        )))
    }
}

impl TryFrom<String> for DeviceName {
    type Error = Reason;

    fn try_from(text: String) -> Result<Self, Reason> {
        text.parse()
    }
}

choices! {
    /// The floating-point type. Half precision is pure: Burn keeps no master weights.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Precision {
        F32 "f32" "32 bits.",
        F64 "f64" "64-bit, where the device supports it.",
        F16 "f16" "16-bit, pure half precision without master weights.",
        Bf16 "bf16" "16-bit with the range of f32, pure half precision without master weights.",
    }
}

choices! {
    /// Which kernels compute layers and losses.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Kernels {
        #[default]
        #[serde(alias = "auto")]
        Fast "fast" "Runner's kernels where available, on `flex` in f32; otherwise Burn's.",
        Reference "reference" "Burn's kernels everywhere.",
    }
}

choices! {
    /// How products and sums are rounded, and by which functions.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Arithmetic {
        #[default]
        Fast "fast" "As the processor does it fastest: other processors may differ in the last digits.",
        Portable "portable" "The same bits on every processor, on `flex` in f32; slower.",
    }
}

impl Arithmetic {
    /// Whether it is the default.
    pub fn is_fast(&self) -> bool {
        *self == Arithmetic::Fast
    }

    /// Whether it has the same bits everywhere.
    pub fn is_portable(&self) -> bool {
        *self == Arithmetic::Portable
    }

    /// e to the power of x: by the system's library, or by the one that is the same everywhere.
    pub fn exp(self, x: f64) -> f64 {
        match self {
            Arithmetic::Fast => x.exp(),
            Arithmetic::Portable => libm::exp(x),
        }
    }

    /// The cosine, by the same libraries.
    pub fn cos(self, x: f64) -> f64 {
        match self {
            Arithmetic::Fast => x.cos(),
            Arithmetic::Portable => libm::cos(x),
        }
    }

    /// The sine, by the same libraries.
    pub fn sin(self, x: f64) -> f64 {
        match self {
            Arithmetic::Fast => x.sin(),
            Arithmetic::Portable => libm::sin(x),
        }
    }

    /// x to the power of y, by the same libraries.
    pub fn pow(self, x: f64, y: f64) -> f64 {
        match self {
            Arithmetic::Fast => x.powf(y),
            Arithmetic::Portable => libm::pow(x, y),
        }
    }

    /// The decimal logarithm, by the same libraries.
    pub fn log10(self, x: f64) -> f64 {
        match self {
            Arithmetic::Fast => x.log10(),
            Arithmetic::Portable => libm::log10(x),
        }
    }
}

/// A power by repeated squaring: the same bits everywhere. How `powi` rounds is not specified.
pub fn power(base: f64, exponent: usize) -> f64 {
    let (mut square, mut rest, mut product) = (base, exponent, 1.0);
    while rest > 0 {
        if rest % 2 == 1 {
            product *= square;
        }
        square *= square;
        rest /= 2;
    }
    product
}

impl Kernels {
    /// Whether they are the default.
    pub fn is_fast(&self) -> bool {
        *self == Kernels::Fast
    }

    /// Whether a device uses runner's kernels.
    pub fn are_own(self, backend: Backend, precision: Precision) -> bool {
        self.is_fast() && backend == Backend::Flex && precision == Precision::F32
    }

    /// Whose kernels a device uses, as one word.
    pub fn on(self, backend: Backend, precision: Precision) -> &'static str {
        if self.are_own(backend, precision) {
            "runner"
        } else {
            "burn"
        }
    }
}

impl FromStr for Precision {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Reason> {
        by_name(text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(_, name, _)| *name).collect();
            Reason(format!("expected one of {}", names.join(", ")))
        })
    }
}

impl Precision {
    /// Bytes per number.
    pub fn num_bytes(self) -> u64 {
        match self {
            Precision::F64 => 8,
            Precision::F32 => 4,
            Precision::F16 | Precision::Bf16 => 2,
        }
    }

    /// Stored bits of a number's mantissa.
    pub fn mantissa_bits(self) -> i32 {
        match self {
            Precision::F64 => 52,
            Precision::F32 => 23,
            Precision::F16 => 10,
            Precision::Bf16 => 7,
        }
    }
}

/// What `conv` could be, with what that is now.
const FORMER_KERNELS: [(&str, &str, Kernels); 2] = [
    ("auto", "As `kernels = \"fast\"`.", Kernels::Fast),
    (
        "reference",
        "As `kernels = \"reference\"`.",
        Kernels::Reference,
    ),
];

impl BackendSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let names = Backend::ALL
            .iter()
            .map(|(_, name, doc)| (*name, *doc))
            .collect();
        let auto = vec![(AUTO, "The best device available: a GPU, otherwise `flex`.")];
        let device = s
            .field(
                "device",
                Kind::Either(Box::new(Kind::Indexed(names)), Box::new(Kind::OneOf(auto))),
                "The device, as listed by `runner devices`.",
            )
            .or("flex".to_owned());
        let precision = s.choice("precision", "The floating-point type.", Precision::F32);
        let required = s
                .field(
                    "required",
                    Kind::Bool,
                    "Whether a missing device, or one that does not support the precision, is an error; otherwise its runs are skipped.",
                )
                .or(false);
        let (kernels, has_former_name) = Self::kernels(s);
        let arithmetic = s.choice(
            "arithmetic",
            "How products and sums are rounded.",
            Arithmetic::Fast,
        );
        Self {
            device: match device.as_str() {
                AUTO => None,
                name => Some(name.parse().unwrap_or(FLEX)),
            },
            precision,
            required,
            kernels,
            arithmetic,
            has_former_name,
        }
    }

    /// Which kernels are meant, and whether by the key's former name.
    fn kernels(s: &mut Section<'_>) -> (Kernels, bool) {
        let kernels = s.choice(
            "kernels",
            "Which kernels compute layers and losses.",
            Kernels::Fast,
        );
        let former: Option<String> = s
            .field(
                "conv",
                Kind::OneOf(FORMER_KERNELS.map(|(name, doc, _)| (name, doc)).into()),
                "The former name of `kernels`.",
            )
            .optional();
        let former = former.and_then(|name| {
            let mut known = FORMER_KERNELS.iter();
            known.find(|row| row.0 == name).map(|row| row.2)
        });
        (former.unwrap_or(kernels), former.is_some())
    }
}
