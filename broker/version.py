"""The version of Barnabas, in the one place that packaging and the command line read."""

__version__ = "0.1.0"
