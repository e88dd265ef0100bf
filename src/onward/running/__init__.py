"""A run on one session: turns and steps, the queue of inputs, hooks, status, recovery. No models and no tools."""
