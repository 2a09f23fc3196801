//! Initialization of weights.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
use crate::spec::kind::Kind;
use crate::spec::section::{Section, choices};

/// How the weights of a layer are initialized.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Initializer {
    /// The distribution of weights of two or more dimensions.
    #[serde(flatten)]
    pub distribution: Distribution,
    /// What biases are, if not what the module makes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias: Option<f64>,
}

/// A distribution of initial weights. Fans are counted as in Burn: for a kernel, channels times its area.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Distribution {
    /// A constant.
    Constant {
        /// The value.
        value: f64,
    },
    /// Uniform in an interval.
    Uniform {
        /// Its lower bound.
        min: f64,
        /// Its upper bound.
        max: f64,
    },
    /// Normally distributed.
    Normal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        std: f64,
    },
    /// He et al., 2015, uniform.
    KaimingUniform {
        /// Factor of the deviation.
        gain: f64,
        /// Whether to use fan-out instead of fan-in.
        fan_out: bool,
    },
    /// He et al., 2015, normal.
    KaimingNormal {
        /// Factor of the deviation.
        gain: f64,
        /// Whether to use fan-out instead of fan-in.
        fan_out: bool,
    },
    /// Glorot and Bengio, 2010, uniform.
    XavierUniform {
        /// Factor of the deviation.
        gain: f64,
    },
    /// Glorot and Bengio, 2010, normal.
    XavierNormal {
        /// Factor of the deviation.
        gain: f64,
    },
    /// Saxe et al., 2013: orthogonal rows or columns.
    Orthogonal {
        /// Factor of the matrix.
        gain: f64,
    },
}

choices! {
    /// The `type` of an initializer.
    enum InitializerType {
        KaimingUniform "kaiming_uniform" "Kaiming (He et al., 2015), uniform.",
        KaimingNormal "kaiming_normal" "Kaiming (He et al., 2015), normal.",
        XavierUniform "xavier_uniform" "Xavier (Glorot and Bengio, 2010), uniform.",
        XavierNormal "xavier_normal" "Xavier (Glorot and Bengio, 2010), normal.",
        Orthogonal "orthogonal" "Saxe et al., 2013: orthogonal rows or columns.",
        Uniform "uniform" "Uniform in an interval.",
        Normal "normal" "Normally distributed.",
        Constant "constant" "A constant.",
        Zeros "zeros" "Always 0.",
        Ones "ones" "Always 1.",
    }
}

choices! {
    /// What follows a layer: the recommended gain differs.
    enum Nonlinearity {
        Linear "linear" "None: gain 1.",
        Relu "relu" "Gain √2.",
        LeakyRelu "leaky_relu" "Gain √(2 / (1 + slope²)), for a slope of 0.01.",
        Tanh "tanh" "Gain 5/3.",
        Sigmoid "sigmoid" "Gain 1.",
        Selu "selu" "Gain 3/4.",
    }
}

impl Nonlinearity {
    /// The factor of the deviation, as PyTorch's `calculate_gain` has it.
    fn gain(self) -> f64 {
        const SLOPE: f64 = 0.01;
        match self {
            Self::Linear | Self::Sigmoid => 1.0,
            Self::Relu => 2.0_f64.sqrt(),
            Self::LeakyRelu => (2.0 / (1.0 + SLOPE * SLOPE)).sqrt(),
            Self::Tanh => 5.0 / 3.0,
            Self::Selu => 0.75,
        }
    }
}

impl Initializer {
    /// The table `initializer` of a layer, if it is set.
    pub(in crate::spec) fn decode(s: &mut Section<'_>) -> Option<Self> {
        const DOC: &str =
            "How initial weights are sampled; the default of Burn's module when not set.";
        s.optional_table("initializer", DOC, |s| {
            let distribution = s.variant("The distribution.", None, Distribution::decode);
            let doc = "What biases are; 0 with \"zeros\", and otherwise the default of Burn's module when not set.";
            let bias = s.field("bias", Kind::between(-1e6, 1e6), doc).optional();
            let is_zero = distribution == Distribution::Constant { value: 0.0 };
            Self {
                distribution,
                bias: bias.or(is_zero.then_some(0.0)),
            }
        })
    }
}

impl Distribution {
    fn decode(s: &mut Section<'_>, kind: InitializerType) -> Self {
        let bounded = Kind::between(-1e6, 1e6);
        let mut number = |key, doc, default| s.field(key, bounded.clone(), doc).or(default);
        let usual = match kind {
            InitializerType::Zeros => return Self::Constant { value: 0.0 },
            InitializerType::Ones => return Self::Constant { value: 1.0 },
            InitializerType::Constant => {
                let value = number("value", "The value.", 0.0);
                return Self::Constant { value };
            }
            InitializerType::Uniform => {
                return Self::Uniform {
                    min: number("min", "Lower bound.", -0.1),
                    max: number("max", "Upper bound.", 0.1),
                };
            }
            InitializerType::Normal => {
                let std = Kind::between(1e-12, 1e6);
                return Self::Normal {
                    mean: number("mean", "Mean.", 0.0),
                    std: s.field("std", std, "Standard deviation.").or(0.02),
                };
            }
            InitializerType::KaimingUniform | InitializerType::KaimingNormal => Nonlinearity::Relu,
            InitializerType::XavierUniform
            | InitializerType::XavierNormal
            | InitializerType::Orthogonal => Nonlinearity::Linear,
        };
        let gain = gain(s, usual);
        let mut fan_out = || {
            let doc = "Whether to use fan-out instead of fan-in.";
            s.field("fan_out", Kind::Bool, doc).or(false)
        };
        match kind {
            InitializerType::KaimingNormal => Self::KaimingNormal {
                gain,
                fan_out: fan_out(),
            },
            InitializerType::XavierUniform => Self::XavierUniform { gain },
            InitializerType::XavierNormal => Self::XavierNormal { gain },
            InitializerType::Orthogonal => Self::Orthogonal { gain },
            _ => Self::KaimingUniform {
                gain,
                fan_out: fan_out(),
            },
        }
    }
}

/// The factor of the deviation: a number, or that of what follows the layer.
fn gain(s: &mut Section<'_>, usual: Nonlinearity) -> f64 {
    let doc = "What follows the layer, which determines `gain`.";
    let nonlinearity = s.choice("nonlinearity", doc, usual);
    let doc = "Factor that multiplies the deviation; that of `nonlinearity` when not set.";
    let gain = s.field("gain", Kind::between(1e-6, 1e6), doc).optional();
    if let (Some(_), Some(at)) = (gain, s.written_at("nonlinearity")) {
        let message = "both `gain` and `nonlinearity` are set, which determines the gain too";
        let wrong = Diagnostic::error("contradiction", message).at(at);
        s.refuse("nonlinearity", wrong.help("remove one of them"));
    }
    gain.unwrap_or_else(|| nonlinearity.gain())
}
