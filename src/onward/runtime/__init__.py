"""The durable loop: models and tools on top of the turn protocol."""
