"""OpenTelemetry traces across Kafka: one trace for each project. Off unless asked for, and then free."""
