"""What producers and consumers may rely on, for machines: JSON Schemas and an AsyncAPI document."""
