"""Writes sequences.csv for modern_lstm.toml: 1,000 sequences of which each number is the sum of the two before it, plus noise."""

import random

random.seed(5)
lines = [",".join([f"x{at}" for at in range(11)] + ["y"])]
for _ in range(1000):
    numbers = [random.random(), random.random()]
    while len(numbers) < 12:
        numbers.append(numbers[-1] + numbers[-2] + random.gauss(0, 0.1))
    lines.append(",".join(f"{number:.6f}" for number in numbers))
with open("sequences.csv", "w") as file:
    file.write("\n".join(lines) + "\n")
