"""One module per family of requests; importing this package registers them all.

They are named here one by one, never found by looking around.
"""

from broker.handlers import api_versions as api_versions
from broker.handlers import cluster as cluster
from broker.handlers import configs as configs
from broker.handlers import fetch as fetch
from broker.handlers import list_offsets as list_offsets
from broker.handlers import metadata as metadata
from broker.handlers import offsets as offsets
from broker.handlers import produce as produce
from broker.handlers import producers as producers
from broker.handlers import topics as topics
