"""Parts of networks, one idea a file. They know no method and no dataset."""
