"""Placeholder while binding."""
from __future__ import annotations

import argparse
def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None: ...
