"""Glue between slurmctld and coppiced. Speaks to both by their command lines only."""
