"""Other people's session formats: one file a format, import and export together."""
