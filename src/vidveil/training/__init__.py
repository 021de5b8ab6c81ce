"""Training: one loop (`loop.fit`), its options, checkpoints, logs, and the folders that runs live in."""
