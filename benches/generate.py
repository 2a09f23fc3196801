"""Tokens per second of text generation by runner and by transformers, on the processor in f32 with 2 threads each.

    python3 benches/generate.py RUNNER [--rounds 5] [--batches 1 4] [--prompt 64] [--new 128] [--layers 30] [--folder DIR]

Needs torch, transformers and tokenizers in the Python that it is run with, and installs nothing. The network has the
shape of SmolLM2-135M and random weights. Both sides continue the same prompts greedily, with a cache of keys and values,
from the same folder, and take turns. Runner's time is that of `runner generate` for all tokens less that for one, so that
neither the start of the process nor the prompt counts; the same difference is taken of transformers, which runs in this
process. Rows have tokens a second of all texts together, by the fastest round of each kind: the start of a process that
reads half a gigabyte varies as much as some generations take, so that differences within a round say nothing. The medians
of the seconds show how far rounds vary. The number of equal tokens is printed, too: a difference of rounding may change
one, and then all that follow.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

THREADS = 2
VOCABULARY = 49152
SPEC = """
data = { type = "text", path = "words.txt", tokens = { length = 200 }, split = { valid = 0.5, order = "time" } }
model = { type = "hub", path = "model" }
optimizer = { type = "sgd", learning_rate = 1e-4 }
train = { epochs = 1, batch_size = 1 }
"""


def run(arguments, folder, *command):
    environment = os.environ | {"RAYON_NUM_THREADS": str(THREADS)}
    command = [os.path.abspath(arguments.runner), *map(str, command)]
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout, time.perf_counter() - start


def prepare(arguments, folder):
    """A folder of a hub, a run of it, and prompts as numbers of tokens."""
    torch.manual_seed(1)
    prompts = torch.randint(1, VOCABULARY, (max(arguments.batches), arguments.prompt))
    if (folder / "results").exists():
        return prompts
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=576, intermediate_size=1536, num_hidden_layers=arguments.layers,
        num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=2048, rope_theta=100000.0,
        tie_word_embeddings=True, bos_token_id=None, eos_token_id=None, initializer_range=0.04))
    model.save_pretrained(folder / "model")
    words = {f"w{at}": at for at in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "model/tokenizer.json"))
    text = torch.randint(1, VOCABULARY, (410,)).tolist()
    (folder / "words.txt").write_text(" ".join(f"w{at}" for at in text))
    (folder / "spec.toml").write_text(SPEC)
    run(arguments, folder, "run", "spec.toml", "--quiet")
    return prompts


def ours(arguments, folder, prompts, num):
    lines = (" ".join(f"w{at}" for at in prompt) for prompt in prompts.tolist())
    (folder / "prompts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    out, seconds = run(arguments, folder, "generate", "results/spec", "--weights", "initial", "--prompts",
                       "prompts.jsonl", "--temperature", 0, "--max-tokens", num, "--json")
    return [json.loads(line)["tokens"] for line in out.splitlines()], seconds


def theirs(model, prompts, num):
    start = time.perf_counter()
    with torch.inference_mode():
        found = model.generate(prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=num, min_new_tokens=num,
                               do_sample=False, pad_token_id=0)
    return found[:, prompts.shape[1]:].tolist(), time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runner")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--folder", help="keeps the network and the run there, and uses those that are there")
    arguments = parser.parse_args()
    torch.set_num_threads(THREADS)
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"the load of the machine is {load:.1f} before the start: figures are those of a busy machine")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(arguments.folder or folder)
        folder.mkdir(parents=True, exist_ok=True)
        prompts = prepare(arguments, folder)
        model = AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32).eval()
        numbers = sum(parameter.numel() for parameter in model.parameters())
        print(f"{numbers:,} parameters, prompts of {arguments.prompt} tokens, {arguments.new} new ones")
        for batch in arguments.batches:
            these = prompts[:batch]
            sides = {"runner": lambda num: ours(arguments, folder, these, num),
                     "transformers": lambda num: theirs(model, these, num)}
            firsts, alls, tokens = {name: [] for name in sides}, {name: [] for name in sides}, {}
            for _ in range(arguments.rounds):
                for name, side in sides.items():
                    firsts[name].append(side(1)[1])
                    tokens[name], seconds = side(arguments.new)
                    alls[name].append(seconds)
            pairs = [(a, b) for one, other in zip(*tokens.values()) for a, b in zip(one, other)]
            rates = {name: batch * (arguments.new - 1) / (min(alls[name]) - min(firsts[name])) for name in sides}
            middle = {name: (statistics.median(firsts[name]), statistics.median(alls[name])) for name in sides}
            shown = [f"{name} {rates[name]:.1f} ({one:.1f} s for one token, {all:.1f} s for all)"
                     for name, (one, all) in middle.items()]
            ratio = rates["runner"] / rates["transformers"]
            equal = sum(a == b for a, b in pairs)
            print(f"batch {batch}: {', '.join(shown)} tokens/s, ratio {ratio:.2f}, {equal} of {len(pairs)} tokens equal")


main()
