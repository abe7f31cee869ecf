"""The system around the domain: Kafka, providers, storage, rendering and the command line."""
