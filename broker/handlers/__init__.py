"""One module per family of requests; importing this package registers them all.

They are named here one by one, never found by looking around.
"""

from broker.handlers import acls as acls
from broker.handlers import alter_configs as alter_configs
from broker.handlers import api_versions as api_versions
from broker.handlers import cluster as cluster
from broker.handlers import configs as configs
from broker.handlers import consumer_groups as consumer_groups
from broker.handlers import coordinators as coordinators
from broker.handlers import fetch as fetch
from broker.handlers import group_administration as group_administration
from broker.handlers import group_offsets as group_offsets
from broker.handlers import groups as groups
from broker.handlers import list_offsets as list_offsets
from broker.handlers import log_dirs as log_dirs
from broker.handlers import metadata as metadata
from broker.handlers import offsets as offsets
from broker.handlers import produce as produce
from broker.handlers import producer_states as producer_states
from broker.handlers import producers as producers
from broker.handlers import quotas as quotas
from broker.handlers import replicas as replicas
from broker.handlers import topics as topics
from broker.handlers import transaction_markers as transaction_markers
from broker.handlers import transaction_views as transaction_views
from broker.handlers import transactional_offsets as transactional_offsets
from broker.handlers import transactions as transactions
from broker.handlers import users as users
