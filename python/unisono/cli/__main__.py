"""`python -m unisono.cli`."""

import sys

from . import main

sys.exit(main())
