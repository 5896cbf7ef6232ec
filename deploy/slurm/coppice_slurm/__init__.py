"""Glue between slurmctld and coppiced. Speaks to both by their command lines only."""

VERSION = "0.1.0"  # of the whole project
