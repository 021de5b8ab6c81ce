"""The guard: faces, people and whatever else a detector knows are found, followed through time, and never let out of
sight. `detectors` look at one picture, `cuts` find where scenes change, `tracks` link what was seen, `finder` puts it
together over a stream of frames, `moments` says where a person should look again, `tracks_file` keeps it on disk."""
