"""Parts of networks, one idea per file. They depend on no method and no dataset."""
