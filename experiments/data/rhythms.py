"""Writes rhythms_x.npy and rhythms_y.npy: recordings of 8 channels and 64 samples (half a second at 128 Hz) as bytes,
in which a weak rhythm of 10 Hz (class 0) or 20 Hz (class 1) is mixed into noise. How strongly each channel has the
rhythm is the same in all recordings, and its phase is random.

    python experiments/data/rhythms.py
"""

from pathlib import Path

import numpy as np

CHANNELS, SAMPLES, RATE, ITEMS = 8, 64, 128, 240

rng = np.random.default_rng(5)
folder = Path(__file__).parent
classes = np.arange(ITEMS) % 2
strengths = rng.uniform(-0.5, 0.5, CHANNELS)
times = np.arange(SAMPLES) / RATE
phases = rng.uniform(0, 2 * np.pi, ITEMS)
rhythms = np.sin(2 * np.pi * np.where(classes, 20, 10)[:, None] * times + phases[:, None])
recordings = strengths[None, :, None] * rhythms[:, None] + rng.normal(0, 1, (ITEMS, CHANNELS, SAMPLES))
np.save(folder / "rhythms_x.npy", np.clip(np.round(128 + 32 * recordings), 0, 255).astype(np.uint8))
np.save(folder / "rhythms_y.npy", classes.astype(np.int64))
