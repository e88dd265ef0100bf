"""What the model sees: the projection of one path, its manifest, and the provider converters."""
