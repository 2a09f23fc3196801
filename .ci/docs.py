#!/usr/bin/env python3
"""Checks the documentation: links, anchors, line widths, the summary, and the examples.

    .ci/docs.py                     everything but the examples
    .ci/docs.py --runner PATH       and every TOML example of the manual through `runner check`

An example that is not a whole experiment is completed with a small one before it is checked.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100
# What `runner manual` writes is as wide as the program's texts.
GENERATED = ROOT / "docs/reference"
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tests/README.md", *ROOT.glob("benches/*.md")]
)

# What completes an example, by the table that it lacks.
REST = {
    "data": '[data]\ntype = "digits"\n',
    "model": '[model]\ntype = "mlp"\n',
    "optimizer": '[optimizer]\ntype = "adam"\nlearning_rate = 1e-3\n',
    "train": "[train]\nepochs = 2\n",
}
# A search needs axes.
AXES = """[sweep.random.axes]
optimizer.type = { type = "choice", values = ["sgd", "adamw"] }
optimizer.learning_rate = { type = "log_uniform", min = 1e-4, max = 1.0 }
optimizer.momentum = { type = "uniform", min = 0.0, max = 0.98, when = "optimizer.type == 'sgd'" }
"""
# Running text needs a network for tokens.
FOR_TOKENS = '[model]\ntype = "transformer_lm"\n'

# Examples that refer to something outside of themselves, by a line that they contain.
NOT_ALONE = [
    'warm_start = ["results/digits"]   # relative to this file',
    'baseline = "optimizer=sgd,learning_rate=0.01"',
    'from = "results/digits/runs/base-s1"   # a run, a capsule, or a file of weights',
    'from = "resnet.pth"',
    'from = "results/harbour_llama/runs/base-s1"',
    'adapter = "my_adapter"',
    'from = "tuned.safetensors"',
    'path = "SmolLM2-135M"',
    'parameters = "body*"',
    'edges = "citations.csv"',
    'path = "survey.csv"',
    'path = "adjacency.npy"',
    'edges = "data/motifs_edges.csv"',
    'edges = "trust.csv"',
    'edges = "villages_roads.csv"',
    'path = "answers.csv"',
    'path = "series.npz"',
    'image = { folder = "data/photos"',
]

problems = []


def problem(page, line, text):
    problems.append(f"{page.relative_to(ROOT)}:{line}: {text}")


def slug(heading):
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    heading = re.sub(r"[`*]", "", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def prose(text):
    """The lines outside of code, with their numbers."""
    in_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


def anchors(page):
    headings = (re.match(r"#+\s+(.*)", line) for _, line in prose(page.read_text()))
    return {slug(found.group(1)) for found in headings if found}


def check_prose(page):
    text = page.read_text()
    if text.count("\n```") % 2 and not text.startswith("```"):
        problem(page, 1, "a code block is not closed")
    for number, line in prose(text):
        if len(line) > WIDTH and not line.startswith(("|", "<!--")) and GENERATED not in page.parents:
            problem(page, number, f"{len(line)} columns; wrap at {WIDTH}")
    whole = "\n".join(line for _, line in prose(text))
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", whole):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists():
            problem(page, 1, f"link to `{target}`, which does not exist")
        elif anchor and there.suffix == ".md" and anchor not in anchors(there):
            problem(page, 1, f"link to `{target}`, which has no such heading")


def check_summary():
    summary = ROOT / "docs/SUMMARY.md"
    linked = {(summary.parent / target).resolve() for target in re.findall(r"\]\(([^)]+)\)", summary.read_text())}
    for page in PAGES:
        if page.is_relative_to(ROOT / "docs") and page != summary and page not in linked:
            problem(page, 1, "not in docs/SUMMARY.md")


def examples():
    for page in PAGES:
        if not (page.is_relative_to(ROOT / "docs") or page.name == "README.md" and page.parent == ROOT):
            continue
        text = page.read_text()
        for block in re.finditer(r"^```toml\n(.*?)^```", text, re.S | re.M):
            yield page, text[: block.start()].count("\n") + 2, block.group(1)


def complete(text):
    tables = tomllib.loads(text)
    data = tables.get("data", {})
    if data and "type" not in data:
        text = f'data.type = "digits"\n{text}' if "[data]" not in text else text.replace("[data]", '[data]\ntype = "digits"', 1)
    rest = dict(REST)
    if data.get("type") == "text":
        rest["model"] = FOR_TOKENS
    if "search" in tables:
        rest["sweep"] = AXES
    if "extends" in tables:
        rest = {}
    return text + "\n" + "\n".join(table for key, table in rest.items() if key not in tables)


def make_data(folder):
    """The files that examples name."""
    shutil.copytree(ROOT / "experiments/data", folder / "data")
    houses = "".join(f"{i},{i * 37 % 100},{1000 + i % 3},{50 + i * 7 % 300}\n" for i in range(300))
    (folder / "houses.csv").write_text("id,area,postcode,price\n" + houses)
    hours = ((day, hour) for day in range(1, 29) for hour in range(24))
    power = "".join(f"2024-01-{d:02}T{h:02}:00,{d * 5 % 30},{100 + h * d % 77}.5\n" for d, h in hours)
    (folder / "power.csv").write_text("time,temperature,load\n" + power)
    sales = "".join(
        f"{d:02}.{m:02}.2024 12:00;{(d * 7 + m) % 30},{d % 10};{m * 100 + d * 3},5 %;${1 + d % 4}.{100 + d * m},{d:02}\n"
        for m in range(1, 13)
        for d in range(1, 29)
    )
    (folder / "sales.csv").write_text("Sales of 2024\nin dollars\ndate;temperature;share;price\n" + sales)
    (folder / "bases").mkdir()
    (folder / "bases/digits.toml").write_text("extends = []\n" + REST["data"] + REST["train"])
    (folder / "bases/adam.toml").write_text("extends = []\n" + REST["optimizer"])


def check_examples(runner):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_data(folder)
        environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
        for number, (page, line, text) in enumerate(examples()):
            if any(known in text for known in NOT_ALONE):
                continue
            spec = folder / f"example_{number}.toml"
            spec.write_text(complete(text))
            done = subprocess.run([runner, "check", spec.name], cwd=folder, env=environment, capture_output=True, text=True)
            if done.returncode:
                problem(page, line, f"`runner check` refuses this example:\n{done.stderr}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--runner", type=Path, help="check the examples with this program")
    runner = arguments.parse_args().runner
    for page in PAGES:
        check_prose(page)
    check_summary()
    if runner:
        check_examples(runner.resolve())
    print("\n".join(problems) or "the documentation is in order")
    return 1 if problems else 0


sys.exit(main())
