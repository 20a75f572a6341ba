"""Property tests have no time limit of their own: a busy machine is no counterexample."""

from hypothesis import HealthCheck, settings

settings.register_profile("tarazu", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("tarazu")
