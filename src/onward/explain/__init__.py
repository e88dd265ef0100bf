"""Why a model does not know what somebody expects it to know: a walk over one log that stops at what explains it."""
