"""Where events live: back ends, the lock, inbox, blobs, index, catalogue, and the one door for writing."""
