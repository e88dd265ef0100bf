"""Finding what should not be passed on, and putting the same placeholder for it everywhere. Pure."""
