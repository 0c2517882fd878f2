"""One page a file: what it shows, and what its forms do."""
