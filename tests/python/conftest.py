"""What all tests need of the process that runs them."""

import signal


def pytest_configure() -> None:
    """Ranks take over what is done with SIGINT, and shells have it ignored by what they start in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
