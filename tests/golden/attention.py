"""Attention of PyTorch and of the library transformers, which a test in crates/network compares runner's with.

Run from the root of the repository, with `pip install torch transformers`:

    python tests/golden/attention.py > tests/golden/attention.json

Weights and inputs are formulas. Rotation is that of LLaMA, the norm of queries and keys that of Qwen3, windows those of
Mistral, slopes by distance those of BLOOM; the attention itself is scaled_dot_product_attention, in float64. The library
computes the frequencies of all types except "linear" in float32.
"""

import json
import math
import sys

# The library looks for a module `pytorch`, which is not the script beside this one.
sys.path.pop(0)

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

ITEMS, LENGTH, WIDTH = 2, 5, 6
torch.set_default_dtype(torch.float64)


def formula(number, *shape):
    at = torch.arange(math.prod(shape), dtype=torch.float64)
    return torch.sin(1.0 + 0.5 * number + 0.37 * at).reshape(shape)


def rotated(query, keys, theta, scaling):
    size = query.shape[-1]
    if isinstance(scaling, dict):
        trained = scaling.pop("trained", 2048)
        config = LlamaConfig(hidden_size=size, num_attention_heads=1, max_position_embeddings=trained,
                             rope_parameters={"rope_theta": theta, **scaling})
        frequencies, factor = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](config, seq_len=LENGTH)
        angles = torch.outer(torch.arange(LENGTH).double(), frequencies.double())
    else:
        frequencies = theta ** (-torch.arange(0, size, 2) / size)
        angles, factor = torch.outer(torch.arange(LENGTH) / scaling, frequencies), 1.0
    angles = torch.cat((angles, angles), -1)[None]
    return apply_rotary_pos_emb(query, keys, angles.cos() * factor, angles.sin() * factor)


def normed(x, number):
    """As Qwen3RMSNorm, which computes in float32."""
    epsilon = Qwen3RMSNorm(x.shape[-1]).variance_epsilon
    return formula(number, x.shape[-1]) * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)


def output(heads, kv_heads, size, bias, theta=None, scaling=1.0, qk_norm=False, window=None, alibi=False, causal=False):
    x = formula(0, ITEMS, LENGTH, WIDTH)
    number = iter(range(1, 99))

    def linear(x, inputs, outputs):
        # Runner's matrices are [inputs, outputs].
        y = x @ (formula(next(number), inputs, outputs) / math.sqrt(inputs))
        return y + formula(next(number), outputs) if bias else y

    def split(x, num):
        return x.view(ITEMS, LENGTH, num, size).transpose(1, 2)

    query = split(linear(x, WIDTH, heads * size), heads)
    keys = split(linear(x, WIDTH, kv_heads * size), kv_heads)
    values = split(linear(x, WIDTH, kv_heads * size), kv_heads)
    last = [next(number) for _ in range(2 if bias else 1)]
    if qk_norm:
        query, keys = normed(query, next(number)), normed(keys, next(number))
    if theta is not None:
        query, keys = rotated(query, keys, theta, scaling)
    distance = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)[None]
    mask = torch.zeros(1, heads, LENGTH, LENGTH)
    if alibi:
        slopes = build_alibi_tensor(torch.ones(1, LENGTH), heads, torch.float64)[:, 0, 1]
        mask = mask - slopes[None, :, None, None] * distance.abs()
    if causal:
        mask = mask.masked_fill(distance < 0, -math.inf)
    if window is not None:
        mask = mask.masked_fill(distance.abs() >= window, -math.inf)
    context = scaled_dot_product_attention(query, keys, values, attn_mask=mask, enable_gqa=True)
    context = context.transpose(1, 2).reshape(ITEMS, LENGTH, heads * size)
    number = iter(last)
    return linear(context, heads * size, WIDTH).flatten().tolist()


CASES = {
    "num_heads = 4, num_kv_heads = 2, head_dim = 4, bias = false, rotary = true, causal = true":
        output(4, 2, 4, False, theta=10000.0, causal=True),
    "num_heads = 3, num_kv_heads = 1, rotary = true, theta = 500.0, rotary_scaling = 4.0":
        output(3, 1, 2, True, theta=500.0, scaling=4.0),
    "num_heads = 2, head_dim = 4, qk_norm = true, rotary = true, causal = true":
        output(2, 2, 4, True, theta=10000.0, qk_norm=True, causal=True),
    "num_heads = 2, head_dim = 16, rotary = true, theta = 100.0, rotary_type = 'llama3', rotary_scaling = 8.0, rotary_length = 64":
        output(2, 2, 16, True, theta=100.0, scaling=dict(
            rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
            original_max_position_embeddings=64)),
    "num_heads = 2, head_dim = 16, rotary = true, theta = 100.0, rotary_type = 'yarn', rotary_scaling = 4.0, rotary_length = 64, rotary_high = 8.0, causal = true":
        output(2, 2, 16, True, theta=100.0, causal=True, scaling=dict(
            rope_type="yarn", factor=4.0, beta_fast=8.0, original_max_position_embeddings=64)),
    "num_heads = 2, head_dim = 8, rotary = true, theta = 100.0, rotary_type = 'dynamic', rotary_scaling = 3.0, rotary_length = 3":
        output(2, 2, 8, True, theta=100.0, scaling=dict(rope_type="dynamic", factor=3.0, trained=3)),
    "num_heads = 2, head_dim = 8, rotary = true, theta = 100.0, rotary_type = 'dynamic', rotary_scaling = 3.0, rotary_length = 8, causal = true":
        output(2, 2, 8, True, theta=100.0, causal=True, scaling=dict(rope_type="dynamic", factor=3.0, trained=8)),
    "num_heads = 2, head_dim = 6, rotary = true, theta = 100.0, rotary_type = 'longrope', rotary_scaling = 4.0, rotary_length = 3, rotary_short = [1.0, 1.1, 1.2], rotary_long = [1.0, 2.0, 3.5]":
        output(2, 2, 6, True, theta=100.0, scaling=dict(
            rope_type="longrope", factor=4.0, original_max_position_embeddings=3,
            short_factor=[1.0, 1.1, 1.2], long_factor=[1.0, 2.0, 3.5])),
    "num_heads = 2, head_dim = 6, rotary = true, theta = 100.0, rotary_type = 'longrope', rotary_scaling = 4.0, rotary_length = 8, rotary_short = [1.0, 1.1, 1.2], rotary_long = [1.0, 2.0, 3.5], causal = true":
        output(2, 2, 6, True, theta=100.0, causal=True, scaling=dict(
            rope_type="longrope", factor=4.0, original_max_position_embeddings=8,
            short_factor=[1.0, 1.1, 1.2], long_factor=[1.0, 2.0, 3.5])),
    "num_heads = 6, window = 3, causal = true": output(6, 6, 1, True, window=3, causal=True),
    "num_heads = 2, num_kv_heads = 1, window = 2": output(2, 1, 3, True, window=2),
    "num_heads = 6, alibi = true, causal = true": output(6, 6, 1, True, alibi=True, causal=True),
    "num_heads = 2, bias = false, alibi = true": output(2, 2, 3, False, alibi=True),
}
print(json.dumps({"torch": torch.__version__, "cases": [{"settings": k, "output": v} for k, v in CASES.items()]}))
