"""The nouns of the command line; each file holds one `app: typer.Typer`."""
