"""Video in and out: sources, probing, reading, writing. Independent of methods and of learning."""
