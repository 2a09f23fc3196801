//! Classes and functions that PyTorch does not have.

/// A helper; the order is that of the generated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Helper {
    /// `causal_mask(query, memory)`.
    CausalMask,
    /// `local_response_norm(x, size, alpha, beta, k)`.
    LocalResponseNorm,
    /// `GaussianNoise(std)`.
    GaussianNoise,
    /// `PositionalEncoding(length, width)`.
    PositionalEncoding,
    /// `RotaryEncoding(length, width)`.
    RotaryEncoding,
    /// `Parameter(*shape)`.
    Parameter,
    /// `SwiGLU(in_features, out_features, bias)`.
    SwiGlu,
}

impl Helper {
    /// Its source.
    pub fn text(self) -> &'static str {
        match self {
            Self::CausalMask => CAUSAL_MASK,
            Self::LocalResponseNorm => LOCAL_RESPONSE_NORM,
            Self::GaussianNoise => GAUSSIAN_NOISE,
            Self::PositionalEncoding => POSITIONAL_ENCODING,
            Self::RotaryEncoding => ROTARY_ENCODING,
            Self::Parameter => PARAMETER,
            Self::SwiGlu => SWIGLU,
        }
    }
}

const CAUSAL_MASK: &str = r#"def causal_mask(query, memory):
    """True where a position must not attend: at later positions."""
    shape = (query.shape[1], memory.shape[1])
    return torch.ones(shape, dtype=torch.bool, device=query.device).triu(1)"#;

const LOCAL_RESPONSE_NORM: &str = r#"def local_response_norm(x, size, alpha, beta, k):
    """As in PyTorch; for an even size, there is one more neighbor after the channel than before it."""
    squares = F.pad(x.square().flatten(2).transpose(1, 2), ((size - 1) // 2, size // 2))
    means = F.avg_pool1d(squares, size, stride=1).transpose(1, 2).reshape(x.shape)
    return x / (k + alpha * means) ** beta"#;

const GAUSSIAN_NOISE: &str = r#"class GaussianNoise(nn.Module):
    """Adds normal noise in training."""

    def __init__(self, std):
        super().__init__()
        self.std = std

    def forward(self, x):
        return x + self.std * torch.randn_like(x) if self.training else x"#;

const POSITIONAL_ENCODING: &str = r#"class PositionalEncoding(nn.Module):
    """Adds sines and cosines (Vaswani et al., 2017), which are loaded with the weights."""

    def __init__(self, length, width):
        super().__init__()
        self.register_buffer("sinusoids", torch.zeros(1, length, width))

    def forward(self, x):
        return x + self.sinusoids[:, : x.shape[1]]"#;

const ROTARY_ENCODING: &str = r#"class RotaryEncoding(nn.Module):
    """Rotates pairs of values by their position (Su et al., 2021). Cosines and sines are loaded with the weights."""

    def __init__(self, length, width):
        super().__init__()
        self.register_buffer("rotations", torch.zeros(length, width, 2))

    def forward(self, x):
        cosines, sines = self.rotations[: x.shape[1]].unbind(-1)
        turned = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
        return x * cosines + turned * sines"#;

const PARAMETER: &str = r#"class Parameter(nn.Module):
    """A learned tensor, the same for every item of a batch."""

    def __init__(self, *shape):
        super().__init__()
        self.value = nn.Parameter(torch.zeros(shape))

    def forward(self, x):
        return self.value.expand(len(x), *self.value.shape)"#;

const SWIGLU: &str = r#"class SwiGLU(nn.Module):
    """A gated linear unit with silu (Shazeer, 2020)."""

    def __init__(self, in_features, out_features, bias):
        super().__init__()
        self.linear_inner = nn.Linear(in_features, out_features, bias=bias)
        self.linear_outer = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x):
        return F.silu(self.linear_inner(x)) * self.linear_outer(x)"#;
