"""Does it still hold? The observations of one path against what is there now, and what was concluded from them."""
