"""Every way to die, tried on real Kafka with a paid provider that keeps a ledger; `make faults`."""
