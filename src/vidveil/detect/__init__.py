"""Detection: faces, people and whatever else a detector knows are found and followed through time.

`detectors` search one picture, `searches` run them in limited time, `cuts` finds where scenes change, `scene` and
`tracks` link what was found between two cuts, `finder` puts it together over a stream of frames, `moments` lists where
a person should look again, `tracks_file` keeps tracks on disk, `settings` turns a user's options into all of this.
"""
