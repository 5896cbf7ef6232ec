"""Cost profiles as --profile FILE reads them."""


def toml(profile):
    """`profile` holds numbers, and the tables "nic" and "switch" of numbers."""
    lines = [f"{key} = {value!r}" for key, value in profile.items() if not isinstance(value, dict)]
    for table in ("nic", "switch"):
        lines += [f"[{table}]"] + [f"{key} = {value!r}" for key, value in profile[table].items()]
    return "\n".join(lines)
