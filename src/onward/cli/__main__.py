"""`python -m onward.cli` is `onward`."""

import sys

from onward.cli import main

sys.exit(main())
