"""One module per family of requests; importing this package registers them all.

They are named here one by one, never found by looking around.
"""

from broker.handlers import api_versions as api_versions
