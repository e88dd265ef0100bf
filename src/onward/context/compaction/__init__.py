"""When a context is made smaller, and how: pure planners that look at a surface and give a plan, or say why not."""
