"""Generator of ``protocol/messages``: compact schema files in, straight-line Python out.

``python -m barnabas.protocol.generate`` writes the modules, ``--check`` reports those that differ.
"""
