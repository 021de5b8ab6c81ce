"""Clips in 720p in which the place of every face is known, and how well faces in them are covered."""
