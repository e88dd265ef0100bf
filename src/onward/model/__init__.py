"""What a session is: events, messages, the tree, the surface, turns. Pure functions and data; no I/O, no clock."""
