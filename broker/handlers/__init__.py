"""One module per family of requests; importing this package registers them all.

They are named here one by one, never found by looking around.
"""

from barnabas.broker.handlers import acls as acls
from barnabas.broker.handlers import alter_configs as alter_configs
from barnabas.broker.handlers import api_versions as api_versions
from barnabas.broker.handlers import cluster as cluster
from barnabas.broker.handlers import configs as configs
from barnabas.broker.handlers import coordinators as coordinators
from barnabas.broker.handlers import features as features
from barnabas.broker.handlers import log_dirs as log_dirs
from barnabas.broker.handlers import metadata as metadata
from barnabas.broker.handlers import quotas as quotas
from barnabas.broker.handlers import replicas as replicas
from barnabas.broker.handlers import sasl as sasl
from barnabas.broker.handlers import topics as topics
from barnabas.broker.handlers import users as users
from barnabas.broker.handlers.groups import consumer_groups as consumer_groups
from barnabas.broker.handlers.groups import group_administration as group_administration
from barnabas.broker.handlers.groups import group_offsets as group_offsets
from barnabas.broker.handlers.groups import groups as groups
from barnabas.broker.handlers.records import fetch as fetch
from barnabas.broker.handlers.records import list_offsets as list_offsets
from barnabas.broker.handlers.records import offsets as offsets
from barnabas.broker.handlers.records import produce as produce
from barnabas.broker.handlers.transactions import add_offsets_to_txn as add_offsets_to_txn
from barnabas.broker.handlers.transactions import producer_states as producer_states
from barnabas.broker.handlers.transactions import producers as producers
from barnabas.broker.handlers.transactions import transaction_markers as transaction_markers
from barnabas.broker.handlers.transactions import transaction_views as transaction_views
from barnabas.broker.handlers.transactions import transactional_offsets as transactional_offsets
from barnabas.broker.handlers.transactions import transactions as transactions
