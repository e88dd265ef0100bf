"""`Session`: the verbs on one session."""
