"""Sentences about failures of Spark, of its Python workers and of a user's functions."""
