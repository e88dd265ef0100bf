"""Tools: what a model may ask for, what each does to the world, and how calls are checked, run and stopped."""
