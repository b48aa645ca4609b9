"""The image, built and run on machines without a container engine or a registry.

buildah builds it, with a base made from Debian's packages instead of the one the Dockerfile names;
`container.py` runs it in namespaces of its own, as an engine would.
"""
