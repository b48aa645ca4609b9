"""``python -m barnabas.spark run my_pipeline.py`` runs the pipelines of a file with Spark."""

import sys

from barnabas.spark_connector.running.command import main

sys.exit(main())
