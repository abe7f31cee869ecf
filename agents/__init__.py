"""The actors. Each parses nothing, waits for nothing, and decides nothing that the domain can decide."""
