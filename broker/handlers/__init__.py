"""One module per family of requests; importing this package registers them all.

They are named here one by one, never found by looking around.
"""

from barnabas.broker.handlers import acls as acls
from barnabas.broker.handlers import add_offsets_to_txn as add_offsets_to_txn
from barnabas.broker.handlers import alter_configs as alter_configs
from barnabas.broker.handlers import api_versions as api_versions
from barnabas.broker.handlers import cluster as cluster
from barnabas.broker.handlers import configs as configs
from barnabas.broker.handlers import consumer_groups as consumer_groups
from barnabas.broker.handlers import coordinators as coordinators
from barnabas.broker.handlers import features as features
from barnabas.broker.handlers import fetch as fetch
from barnabas.broker.handlers import group_administration as group_administration
from barnabas.broker.handlers import group_offsets as group_offsets
from barnabas.broker.handlers import groups as groups
from barnabas.broker.handlers import list_offsets as list_offsets
from barnabas.broker.handlers import log_dirs as log_dirs
from barnabas.broker.handlers import metadata as metadata
from barnabas.broker.handlers import offsets as offsets
from barnabas.broker.handlers import produce as produce
from barnabas.broker.handlers import producer_states as producer_states
from barnabas.broker.handlers import producers as producers
from barnabas.broker.handlers import quotas as quotas
from barnabas.broker.handlers import replicas as replicas
from barnabas.broker.handlers import sasl as sasl
from barnabas.broker.handlers import topics as topics
from barnabas.broker.handlers import transaction_markers as transaction_markers
from barnabas.broker.handlers import transaction_views as transaction_views
from barnabas.broker.handlers import transactional_offsets as transactional_offsets
from barnabas.broker.handlers import transactions as transactions
from barnabas.broker.handlers import users as users
