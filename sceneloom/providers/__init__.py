"""What makes pictures, speech and clips: one module a service, and the ones that need no network."""
