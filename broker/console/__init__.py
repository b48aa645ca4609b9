"""The console: what the broker holds and does, over HTTP, for people and programs.

Imported at the first request for it. It reads what the broker keeps anyway, in slices of the loop's
time, and keeps nothing of what there may be many of.
"""
