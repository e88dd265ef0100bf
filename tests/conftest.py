"""Settings of all tests that draw their examples: none of them judges by the clock, which others' work slows down."""

from hypothesis import HealthCheck, settings

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
