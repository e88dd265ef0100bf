"""`Store`: where sessions are kept, found, forked and deleted."""
