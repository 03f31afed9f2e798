"""One module per verb, each thin: flags in, one call on the client, lines out."""
