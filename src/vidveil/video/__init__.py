"""Video in and out: sources, probing, reading, writing. Knows nothing of learning."""
