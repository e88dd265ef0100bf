"""Models of real providers: neutral messages to pydantic-ai's and back. All that imports pydantic-ai is in here."""
