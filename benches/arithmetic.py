"""The cost of portable arithmetic: training steps with it and with fast arithmetic, alternating, with 2 threads.

    python3 benches/arithmetic.py RUNNER [NETWORK...] [--rounds 5] [--epochs 3]

Uses the networks and the measurement of `peers.py`, and needs its Python packages. Prints the table of
`docs/portable.md`: the median of the rounds' ratios, with the smallest and the largest one.
"""

import argparse
import math
import pathlib
import statistics
import tempfile

import peers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner")
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=16, help="steps of an epoch")
    arguments = parser.parse_args()
    unknown = set(arguments.networks) - set(peers.NETWORKS)
    if unknown:
        parser.error(f"no such network: {', '.join(sorted(unknown))}; there are {', '.join(peers.NETWORKS)}")
    print("| network | portable, ms a step | fast | ratio | from | to |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    all_ratios = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        peers.write_data(folder, arguments.steps)
        for name in arguments.networks or peers.NETWORKS:
            kind, layers = peers.NETWORKS[name]
            times = {"portable": [], "fast": []}
            for number in range(arguments.rounds):
                for arithmetic in sorted(times, reverse=number % 2 == 0):
                    backend = f'arithmetic = "{arithmetic}"'
                    times[arithmetic].append(peers.runner_step(arguments, folder, kind, layers, backend))
            ratios = [portable / fast for portable, fast in zip(times["portable"], times["fast"])]
            all_ratios.append(statistics.median(ratios))
            portable, fast = (1000 * statistics.median(times[which]) for which in ("portable", "fast"))
            print(
                f"| {name} | {portable:.2f} | {fast:.2f} | {all_ratios[-1]:.2f} | {min(ratios):.2f} | {max(ratios):.2f} |",
                flush=True,
            )
    mean = math.exp(statistics.mean(math.log(ratio) for ratio in all_ratios))
    print(f"| geometric mean | | | {mean:.2f} | | |")


if __name__ == "__main__":
    main()
