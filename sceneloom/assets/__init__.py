"""Assets: where finished files are kept, how they are fetched, and what proves that they are whole."""
