"""What was looked at, and whether it is still so: observations, fingerprints, and their comparison with now."""
