"""``python -m barnabas`` is ``barnabas``."""

import sys

from barnabas.broker.cli.main import main

sys.exit(main())
