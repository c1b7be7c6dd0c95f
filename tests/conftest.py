"""Makes the fixtures of `tests/support` known to all tests."""

from hypothesis import settings

pytest_plugins = ["tests.support.prometheus", "tests.support.program"]

# A time limit for each example would make tests fail on a busy machine; each test as a whole has one.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")
