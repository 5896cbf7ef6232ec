"""Prometheus' text format, read strictly: whatever its description (prometheus.io/docs/instrumenting/
exposition_formats, version 0.0.4) does not allow is an error, and so is what its naming conventions
advise against. Written from that description, not from the program's code."""

import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(r"(?P<name>%s)(?:\{(?P<labels>(?:%s,)*(?:%s)?)\})? (?P<value>\S+)(?: -?\d+)?"
                    % (NAME, LABEL, LABEL))
# What a name may end in if it counts in a unit that is no base unit.
NOT_BASE = ("_milliseconds", "_microseconds", "_us", "_ms", "_kilobytes", "_megabytes", "_minutes",
            "_hours", "_percent")


class Family:
    def __init__(self, name):
        self.name, self.help, self.type, self.samples = name, None, None, []


def value_of(text):
    # Go's ParseFloat, which the description refers to, takes NaN in any case.
    if not re.fullmatch(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+|Inf)|(?i:nan)", text):
        raise ValueError("not a number: " + text)
    return float(text.replace("Inf", "inf"))


def family_of(name, families):
    """The family that a sample belongs to: histograms and summaries have names of their own."""
    if name in families:
        return families[name]
    for suffix in ("_bucket", "_sum", "_count"):
        owner = families.get(name.removesuffix(suffix)) if name.endswith(suffix) else None
        if owner is not None and (owner.type == "histogram" or
                                  owner.type == "summary" and suffix != "_bucket"):
            return owner
    raise ValueError("no TYPE line before " + name)


def parse(text):
    """Families by name; each sample is (name, labels, value)."""
    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    families, last, seen = {}, None, set()
    for line in text.split("\n")[:-1]:
        comment = re.fullmatch(r"# (HELP|TYPE) (%s) (.*)" % NAME, line)
        if comment:
            kind, name, rest = comment.groups()
            family = families.setdefault(name, Family(name))
            if family.samples or getattr(family, kind.lower()) is not None:
                raise ValueError("a second or late %s line of %s" % (kind, name))
            if kind == "TYPE" and rest not in ("counter", "gauge", "histogram", "summary", "untyped"):
                raise ValueError("type of %s: %s" % (name, rest))
            setattr(family, kind.lower(), rest)
            continue
        match = SAMPLE.fullmatch(line)
        if not match:
            raise ValueError("not a sample: " + line)
        name, body, value = match["name"], match["labels"] or "", match["value"]
        labels = [m.groups() for m in re.finditer(LABEL, body)]
        if len(dict(labels)) != len(labels):
            raise ValueError("a label twice: " + line)
        key = (name, tuple(sorted(labels)))
        if key in seen:
            raise ValueError("a sample twice: " + line)
        seen.add(key)
        family = family_of(name, families)
        if last is not None and family is not last and family.samples:
            raise ValueError("the samples of %s are not together" % family.name)
        last = family
        family.samples.append((name, dict(labels), value_of(value)))
    for family in families.values():
        check_histogram(family)
    return families


def check_histogram(family):
    """Buckets rise, end with +Inf and agree with the count."""
    if family.type != "histogram":
        return
    series = {}
    for name, labels, value in family.samples:
        bound = labels.pop("le", None)
        if (bound is not None) != (name == family.name + "_bucket"):
            raise ValueError("le of " + name)
        one = series.setdefault(tuple(sorted(labels.items())), {"buckets": []})
        if bound is not None:
            labels["le"] = bound
            one["buckets"].append((value_of(bound), value))
        else:
            one[name.removeprefix(family.name)] = value
    for labels, one in series.items():
        bounds = [bound for bound, _ in one["buckets"]]
        counts = [count for _, count in one["buckets"]]
        if bounds != sorted(set(bounds)) or bounds[-1] != math.inf or counts != sorted(counts):
            raise ValueError("buckets of %s%s" % (family.name, labels))
        if counts[-1] != one["_count"] or (one["_count"] == 0) != (one["_sum"] == 0):
            raise ValueError("count and sum of %s%s" % (family.name, labels))


def complaints(families):
    """What the conventions advise against."""
    found = []
    for name, family in families.items():
        if not family.help or not family.help.endswith("."):
            found.append(name + ": no help text, or not a sentence")
        if family.type is None or family.type == "untyped":
            found.append(name + ": no type")
        if (family.type == "counter") != name.endswith("_total"):
            found.append(name + ": counters, and only they, end in _total")
        if name != name.lower() or "__" in name or ":" in name:
            found.append(name + ": not in snake case")
        if name.removesuffix("_total").endswith(NOT_BASE):
            found.append(name + ": not in base units")
        if family.type == "histogram" and not name.endswith(("_seconds", "_bytes")):
            found.append(name + ": a histogram without a unit")
        for sample, labels, value in family.samples:
            if family.type in ("counter", "histogram") and not value >= 0:
                found.append("%s%s: %s" % (sample, labels, value))
    return found


def one(families, name, **labels):
    """The value of the one sample with that name and those labels."""
    found = [value for sample, its, value in family_of(name, families).samples
             if sample == name and its == labels]
    if len(found) != 1:
        raise KeyError("%s%s: %d samples" % (name, labels, len(found)))
    return found[0]
