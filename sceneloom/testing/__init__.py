"""What people test their pipelines with."""
