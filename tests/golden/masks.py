"""Layers of PyTorch without padding, which a test in crates/network compares runner's with.

Run from the root of the repository, with `pip install torch`:

    python tests/golden/masks.py > tests/golden/masks.json

Weights and inputs are formulas. The first item has 3 real positions of 5, the second has all, in float64.
"""

import json
import math
import sys

# The library looks for a module `pytorch`, which is not the script beside this one.
sys.path.pop(0)

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

ITEMS, LENGTH, WIDTH, HIDDEN = 2, 5, 6, 4
LENGTHS = torch.tensor([3, 5])
torch.set_default_dtype(torch.float64)
PADDED = torch.arange(LENGTH)[None] >= LENGTHS[:, None]


def formula(number, *shape):
    at = torch.arange(math.prod(shape), dtype=torch.float64)
    return torch.sin(1.0 + 0.5 * number + 0.37 * at).reshape(shape)


class Weights:
    """Runner's weights, in the order of its modules. Its matrices are [inputs, outputs]."""

    def __init__(self):
        self.all = []

    def vector(self, *shape):
        fan = shape[0] if len(shape) == 2 else 1.0
        leaf = (formula(len(self.all) + 1, *shape) / math.sqrt(fan)).requires_grad_()
        self.all.append(leaf)
        return leaf

    def linear(self, inputs, outputs):
        return self.vector(inputs, outputs).T, self.vector(outputs)

    def attention(self):
        query, key, value = (self.linear(WIDTH, WIDTH) for _ in range(3))
        output = self.linear(WIDTH, WIDTH)
        return {
            "in_proj_weight": torch.cat([query[0], key[0], value[0]]),
            "in_proj_bias": torch.cat([query[1], key[1], value[1]]),
            "out_proj.weight": output[0],
            "out_proj.bias": output[1],
        }

    def gates(self, suffix, order):
        gates = [(self.linear(WIDTH, HIDDEN), self.linear(HIDDEN, HIDDEN)) for _ in order]
        gates = [gates[at] for at in order]
        return {
            f"weight_ih_l0{suffix}": torch.cat([gate[0][0] for gate in gates]),
            f"weight_hh_l0{suffix}": torch.cat([gate[1][0] for gate in gates]),
            f"bias_ih_l0{suffix}": torch.cat([gate[0][1] for gate in gates]),
            f"bias_hh_l0{suffix}": torch.cat([gate[1][1] for gate in gates]),
        }


def attention(x, weights):
    module = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
    x, _ = functional_call(module, weights.attention(), (x, x, x), {"key_padding_mask": PADDED})
    return (x * ~PADDED[:, :, None]).sum(1) / LENGTHS[:, None]


def encoder(norm_first):
    def output(x, weights):
        module = nn.TransformerEncoderLayer(WIDTH, 2, 8, 0.0, batch_first=True, norm_first=norm_first)
        state = {f"self_attn.{name}": value for name, value in weights.attention().items()}
        for name, sizes in (("linear1", (WIDTH, 8)), ("linear2", (8, WIDTH))):
            state[f"{name}.weight"], state[f"{name}.bias"] = weights.linear(*sizes)
        # Burn names norms by the sublayer that they are in front of if they come first.
        for name in ("norm2", "norm1") if norm_first else ("norm1", "norm2"):
            state[f"{name}.weight"], state[f"{name}.bias"] = weights.vector(WIDTH), weights.vector(WIDTH)
        x = functional_call(module, state, (x,), {"src_key_padding_mask": PADDED})
        return x.masked_fill(PADDED[:, :, None], -math.inf).amax(1)

    return output


def recurrent(kind, order, last, is_both):
    def output(x, weights):
        module = kind(WIDTH, HIDDEN, batch_first=True, bidirectional=is_both)
        state = weights.gates("", order)
        if is_both:
            state |= weights.gates("_reverse", order)
        packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
        states, final = functional_call(module, state, (packed,))
        if last:
            final = final[0] if isinstance(final, tuple) else final
            return final.transpose(0, 1).flatten(1)
        return pad_packed_sequence(states, batch_first=True, total_length=LENGTH)[0].flatten(1)

    return output


def case(layers, output):
    torch.manual_seed(0)
    x, weights = formula(0, ITEMS, LENGTH, WIDTH).masked_fill(PADDED[:, :, None], 0.0), Weights()
    found = output(x, weights)
    (found * formula(50, *found.shape)).sum().backward()
    gradients = [leaf.grad.flatten().tolist() for leaf in weights.all]
    return {"layers": layers, "output": found.flatten().tolist(), "gradients": gradients}


RECURRENT = "hidden_size = 4, inputs = ['input'], mask = 'm'"
STACK = "num_layers = 1, num_heads = 2, feedforward_size = 8, dropout = 0.0, activation = 'relu', inputs = ['input'], mask = 'm'"
CASES = [
    case("{ type = 'multi_head_attention', num_heads = 2, inputs = ['input'], mask = 'm' }, { type = 'mean', mask = 'm' }",
         attention),
    case(f"{{ type = 'transformer_encoder', {STACK} }}, {{ type = 'max', mask = 'm' }}", encoder(False)),
    case(f"{{ type = 'transformer_encoder', norm_first = true, {STACK} }}, {{ type = 'max', mask = 'm' }}", encoder(True)),
    case(f"{{ type = 'rnn', {RECURRENT} }}, {{ type = 'flatten' }}", recurrent(nn.RNN, [0], False, False)),
    # PyTorch's gates are reset, update, new and input, forget, cell, output.
    case(f"{{ type = 'gru', bidirectional = true, {RECURRENT} }}, {{ type = 'flatten' }}",
         recurrent(nn.GRU, [1, 0, 2], False, True)),
    case(f"{{ type = 'gru', output = 'last', {RECURRENT} }}", recurrent(nn.GRU, [1, 0, 2], True, False)),
    case(f"{{ type = 'lstm', {RECURRENT} }}, {{ type = 'flatten' }}", recurrent(nn.LSTM, [0, 1, 3, 2], False, False)),
    case(f"{{ type = 'lstm', bidirectional = true, output = 'last', {RECURRENT} }}",
         recurrent(nn.LSTM, [0, 1, 3, 2], True, True)),
]
json.dump({"torch": torch.__version__, "cases": CASES}, sys.stdout)
print()
