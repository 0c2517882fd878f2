"""Images that a request names by their address, fetched so that no client chooses where we connect to."""
