"""Which pending jobs can be steered: those that a list of nodes says all about."""


def wants_whole_nodes(job):
    """Whether a list of nodes says all about where it runs; jobs that share nodes are Slurm's."""
    return (job["state"] == "PD" and job["sharing"] == "NO" and job["nodes"].isdigit()
            and not job["required"] and job["array_index"] == "N/A"
            and job["dependency"] in ("", "(null)") and job["reservation"] in ("", "(null)")
            and job["partition"].isprintable() and "," not in job["partition"]
            and has_features("", job["features"]) is not None)


def has_features(node_features, wanted):
    """Of "a&b"; None: the expression is more than that, and Slurm's to judge."""
    if wanted in ("", "(null)"):
        return True
    if not all(c.isalnum() or c in "_-.&" for c in wanted):
        return None
    return set(wanted.split("&")) <= set(node_features.split(","))
