//! Classes and functions that PyTorch does not have.

/// A helper; the order is that of the generated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Helper {
    /// `causal_mask(query, memory)`.
    CausalMask,
    /// `series_mask(x, padding)`.
    SeriesMask,
    /// `reduced(x, mask, axis, reduction)`.
    Reduced,
    /// `recur(module, x, mask)`.
    Recur,
    /// `attend(attention, query, memory, mask)`.
    Attend,
    /// `MaskedEncoder(layer, num_layers)`.
    MaskedEncoder,
    /// `MaskedDecoder(layer, num_layers)`.
    MaskedDecoder,
    /// `local_response_norm(x, size, alpha, beta, k)`.
    LocalResponseNorm,
    /// `DeformConv2d(channels, outputs, kernel_size, ...)`.
    DeformConv2d,
    /// `GaussianNoise(std)`.
    GaussianNoise,
    /// `GaussianSample()`.
    GaussianSample,
    /// `StochasticDepth(probability)`.
    StochasticDepth,
    /// `PositionalEncoding(length, width)`.
    PositionalEncoding,
    /// `RotaryEncoding(length, width)`.
    RotaryEncoding,
    /// `GroupedAttention(width, num_heads, num_kv_heads, head_dim)` with its options.
    GroupedAttention,
    /// `DLinOSS(features, state_size)`.
    Dlinoss,
    /// `linear_scan(factors, updates, reverse)`.
    LinearScan,
    /// `top_k(x, k, fill)`.
    TopK,
    /// `sparsemax(x)`.
    Sparsemax,
    /// `PositionEmbedding(max_length, width)`.
    PositionEmbedding,
    /// `Parameter(*shape)`.
    Parameter,
    /// `SwiGLU(in_features, out_features, bias)`.
    SwiGlu,
    /// `TiedLinear(out_features)`.
    TiedLinear,
}

impl Helper {
    /// Its source.
    pub fn text(self) -> &'static str {
        match self {
            Self::CausalMask => CAUSAL_MASK,
            Self::SeriesMask => SERIES_MASK,
            Self::Reduced => REDUCED,
            Self::Recur => RECUR,
            Self::Attend => ATTEND,
            Self::MaskedEncoder => MASKED_ENCODER,
            Self::MaskedDecoder => MASKED_DECODER,
            Self::LocalResponseNorm => LOCAL_RESPONSE_NORM,
            Self::DeformConv2d => DEFORM_CONV2D,
            Self::GaussianNoise => GAUSSIAN_NOISE,
            Self::GaussianSample => GAUSSIAN_SAMPLE,
            Self::StochasticDepth => STOCHASTIC_DEPTH,
            Self::PositionalEncoding => POSITIONAL_ENCODING,
            Self::RotaryEncoding => ROTARY_ENCODING,
            Self::GroupedAttention => GROUPED_ATTENTION,
            Self::Dlinoss => DLINOSS,
            Self::LinearScan => LINEAR_SCAN,
            Self::TopK => TOP_K,
            Self::Sparsemax => SPARSEMAX,
            Self::PositionEmbedding => POSITION_EMBEDDING,
            Self::Parameter => PARAMETER,
            Self::SwiGlu => SWIGLU,
            Self::TiedLinear => TIED_LINEAR,
        }
    }
}

const CAUSAL_MASK: &str = r#"def causal_mask(query, memory):
    """True where a position must not attend: at later positions."""
    shape = (query.shape[1], memory.shape[1])
    return torch.ones(shape, dtype=torch.bool, device=query.device).triu(1)"#;

const SERIES_MASK: &str = r#"def series_mask(x, padding):
    """1 up to the last position with a number that is not padding, [items, length]."""
    differs = (x != padding).flatten(2).any(2) if x.dim() > 2 else x != padding
    return (differs.flip(1).cumsum(1).flip(1) > 0).float()"#;

const REDUCED: &str = r#"def reduced(x, mask, axis, reduction):
    """A reduction along an axis without padding; 0 for an item that has only padding."""
    shape = [1] * x.dim()
    shape[0], shape[axis] = mask.shape
    real = mask.reshape(shape) != 0
    if reduction == "amax":
        return x.masked_fill(~real, float("-inf")).amax(axis).masked_fill(~real.any(axis), 0.0)
    if reduction == "last":
        places = real.flip(axis).cumsum(axis).flip(axis)
        real = real & (places == 1)
    total = x.masked_fill(~real, 0.0).sum(axis)
    return total / real.sum(axis).clamp(min=1) if reduction == "mean" else total"#;

const RECUR: &str = r#"def recur(module, x, mask, last=False):
    """A recurrent network whose state does not change at padding, where its output is 0."""
    real = mask != 0
    order = (~real).int().argsort(dim=1, stable=True)[:, :, None]
    lengths = real.sum(1)
    packed = nn.utils.rnn.pack_padded_sequence(
        x.gather(1, order.expand_as(x)), lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
    )
    states, final = module(packed)
    if last:
        final = final[0] if isinstance(final, tuple) else final
        return final.transpose(0, 1).flatten(1).masked_fill(lengths[:, None] == 0, 0.0)
    states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
    states = torch.zeros_like(states).scatter(1, order.expand_as(states), states)
    return states.masked_fill(~real[:, :, None], 0.0)"#;

const ATTEND: &str = r#"def attend(attention, query, memory, mask=None, causal=False, values=None):
    """Attention without padding; a position that attends to nothing gets the bias of the output."""
    if mask is None:
        mask = torch.ones(memory.shape[:2], device=memory.device)
    hidden = (mask == 0)[:, None, :].expand(-1, query.shape[1], -1)
    if causal:
        hidden = hidden | causal_mask(query, memory)
    empty = hidden.all(2, keepdim=True)
    each = (hidden & ~empty).repeat_interleave(attention.num_heads, 0)
    values = memory if values is None else values
    x, _ = attention(query, memory, values, need_weights=False, attn_mask=each)
    return torch.where(empty, attention.out_proj.bias, x)"#;

const MASKED_ENCODER: &str = r#"class MaskedEncoder(nn.TransformerEncoder):
    """Without attention to padding."""

    def forward(self, x, mask=None, causal=False):
        for layer in self.layers:
            y = layer.norm1(x) if layer.norm_first else x
            x = x + layer.dropout1(attend(layer.self_attn, y, y, mask, causal))
            x = x if layer.norm_first else layer.norm1(x)
            y = layer.norm2(x) if layer.norm_first else x
            y = layer.linear2(layer.dropout(layer.activation(layer.linear1(y))))
            x = x + layer.dropout2(y)
            x = x if layer.norm_first else layer.norm2(x)
        return x"#;

const MASKED_DECODER: &str = r#"class MaskedDecoder(nn.TransformerDecoder):
    """Without attention to padding."""

    def forward(self, x, memory, mask=None, memory_mask=None, causal=False):
        for layer in self.layers:
            y = layer.norm1(x) if layer.norm_first else x
            x = x + layer.dropout1(attend(layer.self_attn, y, y, mask, causal))
            x = x if layer.norm_first else layer.norm1(x)
            y = layer.norm2(x) if layer.norm_first else x
            x = x + layer.dropout2(attend(layer.multihead_attn, y, memory, memory_mask))
            x = x if layer.norm_first else layer.norm2(x)
            y = layer.norm3(x) if layer.norm_first else x
            y = layer.linear2(layer.dropout(layer.activation(layer.linear1(y))))
            x = x + layer.dropout3(y)
            x = x if layer.norm_first else layer.norm3(x)
        return x"#;

const LOCAL_RESPONSE_NORM: &str = r#"def local_response_norm(x, size, alpha, beta, k):
    """For an even size, there is one more neighbor after the channel, where PyTorch has one more before it."""
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

const GAUSSIAN_SAMPLE: &str = r#"class GaussianSample(nn.Module):
    """A sample of normal distributions in training, and their means otherwise (Kingma and Welling, 2014)."""

    def forward(self, x):
        means, logs = x.chunk(2, dim=-1)
        return means + (logs / 2).exp() * torch.randn_like(means) if self.training else means"#;

const STOCHASTIC_DEPTH: &str = r#"class StochasticDepth(nn.Module):
    """Zeroes random items in training and scales up the others (Huang et al., 2016)."""

    def __init__(self, probability):
        super().__init__()
        self.kept = 1.0 - probability

    def forward(self, x):
        if not self.training:
            return x
        shape = (len(x),) + (1,) * (x.dim() - 1)
        return x * torch.empty(shape, device=x.device).bernoulli_(self.kept) / self.kept"#;

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

const POSITION_EMBEDDING: &str = r#"class PositionEmbedding(nn.Module):
    """Adds a learned vector for each position."""

    def __init__(self, max_length, width):
        super().__init__()
        self.value = nn.Parameter(torch.zeros(max_length, width))

    def forward(self, x):
        return x + self.value[: x.shape[1]]
"#;

const DLINOSS: &str = r#"class DLinOSS(nn.Module):
    """Damped linear oscillators (Boyer et al., 2025), step by step. Real parts of their states come first."""

    def __init__(self, features, state_size):
        super().__init__()
        self.time_step, self.damping, self.stiffness = (nn.Parameter(torch.zeros(state_size)) for _ in range(3))
        self.input_matrix = nn.Parameter(torch.zeros(features, 2 * state_size))
        self.output_matrix = nn.Parameter(torch.zeros(2 * state_size, features))
        self.skip = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        step, damping = torch.sigmoid(self.time_step), torch.relu(self.damping)
        scale = 1 + step * damping
        square = (step * step).clamp(min=1e-6)
        low, high = ((1 + scale + sign * scale.sqrt()) / square for sign in (-2, 2))
        stiffness = low + torch.relu(self.stiffness - low) - torch.relu(self.stiffness - high)
        step, scale, stiffness = (torch.cat((each, each)) for each in (step, scale, stiffness))
        drive = x @ self.input_matrix
        velocity, position, positions = torch.zeros_like(drive[:, 0]), torch.zeros_like(drive[:, 0]), []
        for driven in drive.unbind(1):
            velocity = (velocity + step * (driven - stiffness * position)) / scale
            position = position + step * velocity
            positions.append(position)
        return torch.stack(positions, 1) @ self.output_matrix + self.skip * x"#;

const LINEAR_SCAN: &str = r#"def linear_scan(factors, updates, reverse=False):
    """The states of a linear recurrence, of which the first is its update."""
    steps = range(updates.shape[1])
    states = []
    for at in reversed(steps) if reverse else steps:
        states.append(factors[:, at] * states[-1] + updates[:, at] if states else updates[:, at])
    return torch.stack(states[::-1] if reverse else states, 1)"#;

const TOP_K: &str = r#"def top_k(x, k, fill):
    """The largest values of the last axis, of equal ones the first, and a number in the place of the others."""
    largest = x.sort(dim=-1, descending=True, stable=True).indices[..., :k]
    kept = x.isnan().scatter(-1, largest, True)
    return x.masked_fill(~kept, fill)"#;

const SPARSEMAX: &str = r#"def sparsemax(x):
    """The nearest probabilities along the last axis (Martins and Astudillo, 2016)."""
    x = x - x.amax(-1, keepdim=True)
    sums = x.sort(-1, descending=True).values.cumsum(-1)
    places = torch.arange(1, x.shape[-1] + 1, device=x.device)
    return torch.relu(x - ((sums - 1) / places).amax(-1, keepdim=True))"#;

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

const TIED_LINEAR: &str = r#"class TiedLinear(nn.Module):
    """A linear layer with the matrix of another layer and a bias of its own."""

    def __init__(self, out_features):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x, weight):
        return F.linear(x, weight, self.bias)"#;

const DEFORM_CONV2D: &str = r#"class DeformConv2d(nn.Module):
    """A convolution whose samples are moved by offsets (Dai et al., 2017), and weighted in its second version (Zhu et
    al., 2019), as `torchvision.ops.deform_conv2d`."""

    def __init__(self, channels, outputs, kernel_size, stride, padding, dilation, groups=1, bias=True):
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.groups = groups
        self.weight = nn.Parameter(torch.empty(outputs, channels // groups, *kernel_size))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None
        bound = (channels // groups * kernel_size[0] * kernel_size[1]) ** -0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def places(self, axis, offsets, sides):
        """Where each sample is along an axis."""
        taps = torch.arange(self.kernel_size[axis], device=offsets.device) * self.dilation[axis]
        windows = torch.arange(sides[axis], device=offsets.device) * self.stride[axis] - self.padding[axis]
        taps = taps.repeat_interleave(self.kernel_size[1]) if axis == 0 else taps.repeat(self.kernel_size[0])
        windows = windows.repeat_interleave(sides[1]) if axis == 0 else windows.repeat(sides[0])
        return offsets[:, :, :, axis] + taps[:, None] + windows

    def forward(self, x, offsets, weights=None):
        items, channels, height, width = x.shape
        taps, sides = self.kernel_size[0] * self.kernel_size[1], offsets.shape[2:]
        groups = offsets.shape[1] // (2 * taps)
        offsets = offsets.reshape(items, groups, taps, 2, -1)
        rows, columns = self.places(0, offsets, sides), self.places(1, offsets, sides)
        pixels = x.reshape(items, groups, channels // groups, height * width)
        samples = 0.0
        for down in (0, 1):
            for right in (0, 1):
                row, column = rows.detach().floor() + down, columns.detach().floor() + right
                inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
                part = (1 - (rows - row).abs()) * (1 - (columns - column).abs()) * inside
                at = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
                at = at.long().reshape(items, groups, 1, -1).expand(-1, -1, channels // groups, -1)
                samples = samples + pixels.gather(3, at) * part.reshape(items, groups, 1, -1)
        if weights is not None:
            samples = samples * weights.reshape(items, groups, 1, -1)
        samples = samples.reshape(items, self.groups, channels // self.groups * taps, -1)
        weight = self.weight.reshape(self.groups, -1, samples.shape[2])
        outputs = (weight @ samples).reshape(items, -1, *sides)
        return outputs if self.bias is None else outputs + self.bias[:, None, None]"#;

const GROUPED_ATTENTION: &str = r#"class GroupedAttention(nn.Module):
    """Attention in which heads of queries share keys and values (Ainslie et al., 2023), with the options of LLaMA."""

    def __init__(self, width, num_heads, num_kv_heads, head_dim, bias=True, theta=None, scaling=1.0, window=None,
                 qk_norm=False, alibi=False, causal=False, dropout=0.0, memory_width=None, rotary_type="linear",
                 length=1, low=1.0, high=4.0, factor=1.0, short=None, long=None,
                 value_width=None):
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, head_dim
        self.theta, self.scaling, self.window = theta, scaling, window
        self.alibi, self.causal, self.dropout = alibi, causal, dropout
        self.rotary_type, self.length, self.low, self.high, self.factor = rotary_type, length, low, high, factor
        self.short, self.long = short, long
        memory_width = width if memory_width is None else memory_width
        self.q_proj = nn.Linear(width, num_heads * head_dim, bias=bias)
        self.k_proj = nn.Linear(memory_width, num_kv_heads * head_dim, bias=bias)
        value_width = memory_width if value_width is None else value_width
        self.v_proj = nn.Linear(value_width, num_kv_heads * head_dim, bias=bias)
        self.o_proj = nn.Linear(num_heads * head_dim, width, bias=bias)
        if qk_norm:
            self.q_norm = nn.RMSNorm(head_dim, eps=1e-6)
            self.k_norm = nn.RMSNorm(head_dim, eps=1e-6)
        else:
            self.q_norm = self.k_norm = nn.Identity()

    def heads(self, x, num):
        return x.unflatten(-1, (num, self.head_dim)).transpose(1, 2)

    def frequencies(self, positions, device):
        """By how much pairs of features turn from one position to the next; of slow ones, less by the scaling."""
        pairs = torch.arange(self.head_dim // 2, dtype=torch.float64, device=device)
        plain = self.theta ** (-2 * pairs / self.head_dim)
        if self.rotary_type == "dynamic":
            growth = self.scaling * max(positions, self.length) / self.length - (self.scaling - 1)
            base = self.theta * growth ** (self.head_dim / (self.head_dim - 2))
            return base ** (-2 * pairs / self.head_dim)
        if self.rotary_type == "longrope":
            factors = self.long if positions > self.length else self.short
            return plain / torch.tensor(factors, dtype=torch.float64, device=device)
        if self.rotary_type == "llama3":
            kept = (self.length * plain / (2 * math.pi) - self.low) / (self.high - self.low)
        elif self.rotary_type == "yarn":
            first, last = (
                self.head_dim * math.log(self.length / (turns * 2 * math.pi)) / (2 * math.log(self.theta))
                for turns in (self.high, self.low)
            )
            first, last = max(math.floor(first), 0), min(math.ceil(last), self.head_dim - 1)
            kept = 1 - (pairs - first) / (last - first if last != first else 0.001)
        else:
            return plain / self.scaling
        kept = kept.clamp(0, 1)
        return plain / self.scaling * (1 - kept) + plain * kept

    def rotated(self, x):
        """The first half of the features of each head with the second, by their position."""
        if self.theta is None:
            return x
        positions = torch.arange(x.shape[2], dtype=torch.float64, device=x.device)
        angles = torch.outer(positions, self.frequencies(x.shape[2], x.device))
        cosines = (angles.cos() * self.factor).to(x.dtype)
        sines = (angles.sin() * self.factor).to(x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cosines - b * sines, b * cosines + a * sines), dim=-1)

    def slopes(self):
        """By how much the scores of each head fall with the distance (Press et al., 2022)."""
        power = 1 << (self.num_heads.bit_length() - 1)
        slopes = [2 ** (-8 * head / power) for head in range(1, power + 1)]
        slopes += [2 ** (-4 * head / power) for head in range(1, 2 * power + 1, 2)]
        return torch.tensor(slopes[: self.num_heads])

    def forward(self, x, memory=None, values=None, mask=None):
        memory = x if memory is None else memory
        values = memory if values is None else values
        queries = self.rotated(self.q_norm(self.heads(self.q_proj(x), self.num_heads)))
        keys = self.rotated(self.k_norm(self.heads(self.k_proj(memory), self.num_kv_heads)))
        values = self.heads(self.v_proj(values), self.num_kv_heads)
        shared = self.num_heads // self.num_kv_heads
        keys, values = keys.repeat_interleave(shared, dim=1), values.repeat_interleave(shared, dim=1)
        scores = queries @ keys.transpose(2, 3) / self.head_dim**0.5
        to, of = torch.arange(x.shape[1], device=x.device), torch.arange(memory.shape[1], device=x.device)
        distances = to[:, None] - of
        if self.alibi:
            scores = scores - self.slopes().to(scores)[:, None, None] * distances.abs()
        if self.causal:
            scores = scores.masked_fill(distances < 0, float("-inf"))
        if self.window is not None:
            scores = scores.masked_fill(distances.abs() >= self.window, float("-inf"))
        if mask is None:
            weights = scores.softmax(dim=-1)
        else:
            # A position that attends to nothing has no weights.
            hidden = (mask == 0)[:, None, None, :]
            weights = scores.masked_fill(hidden, -1e30).softmax(dim=-1).masked_fill(hidden, 0.0)
        weights = F.dropout(weights, self.dropout, self.training)
        return self.o_proj((weights @ values).transpose(1, 2).flatten(2))"#;
