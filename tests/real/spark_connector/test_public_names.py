"""The names that docs/spark.md gives to programs."""

import pkgutil
import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[3] / "docs" / "spark.md"
NAMES = sorted(set(re.findall(r"\bbarnabas\.spark\w*(?:\.[A-Za-z_]\w*)*", GUIDE.read_text())))


def test_the_guide_names_only_what_programs_may_rely_on():
    assert "barnabas.spark.data_source.BarnabasDataSource" in NAMES
    assert "barnabas.spark.foreach_batch.single_transaction" in NAMES
    assert [name for name in NAMES if name.startswith("barnabas.spark_connector")] == []
    for name in NAMES:
        pkgutil.resolve_name(name)


def test_the_package_is_imported_without_pyspark():
    # The command names the version to install, so it must start without PySpark.
    code = "import sys, barnabas.spark; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
