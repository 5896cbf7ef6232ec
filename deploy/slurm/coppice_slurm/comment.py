"""A job's comment in Slurm: what its user asks of Coppice there, and what we note behind it.

    sbatch --comment="night run coppice-pattern=lammps/melt coppice-trees=2" ...
    night run coppice-pattern=lammps/melt coppice-trees=2 coppice-job=7

Slurm hands the comment to the prologs of the nodes and to EpilogSlurmctld, so nobody has to ask for the
number of Coppice's job; "coppice-ordered-job=7" says that its ranks have to start in its order, which
is not Slurm's. Users may write into it whatever they like, our marks too: what is read here
is used with the job's user's own rights, and never as an option or by a shell."""

import dataclasses
import re

JOB_MARK = re.compile(r"(?:^|\s)coppice-(?:ordered-)?job=(\d+)\s*$", re.A)
LONGEST_TOLD = 60

# What may stand behind "coppice-...=". Names of patterns are the daemon's (PutPattern).
WISHES = {"pattern": re.compile(r"[A-Za-z0-9._+/@-]{1,128}"), "trees": re.compile(r"[1-9][0-9]{0,3}"),
          "partition": re.compile(r"(?!0x(?:0+|8000)$)0x[0-9A-Fa-f]{1,4}")}


def job_in(comment):
    """Coppice's job that a comment ends with; None."""
    found = JOB_MARK.search(comment or "")
    return found.group(1) if found else None


def unmarked(comment):
    """What the user wrote."""
    own = JOB_MARK.sub("", comment or "").strip()
    return "" if own == "(null)" else own


def marked(comment, job, is_ordered=False):
    """The comment with that job at its end."""
    return f"{unmarked(comment)} coppice-{'ordered-' if is_ordered else ''}job={job}".lstrip()


@dataclasses.dataclass(frozen=True)
class Wishes:
    """Of a job's user."""
    pattern: str = ""  # under which its communication is stored; "": none
    trees: int = 0     # of type II, which it will ask for
    partition: str = ""  # of the fabric, as partitions.conf has it; "": the one that its nodes share
    unread: tuple = ()  # words that look like wishes and are none, fit to be told


NO_WISHES = Wishes()


def wishes_in(comment):
    """Of the words "coppice-pattern=NAME", "coppice-trees=K" and "coppice-partition=0x0001"; the first
    of a kind counts."""
    found, unread = {}, []
    for word in unmarked(comment).split():
        key, is_wish, value = word.partition("=")
        if not key.startswith("coppice-") or not is_wish:
            continue  # no word for us
        key = key[len("coppice-"):]
        if key in WISHES and key not in found and WISHES[key].fullmatch(value):
            found[key] = value
        else:
            unread.append(ascii(word[:LONGEST_TOLD]))
    return Wishes(found.get("pattern", ""), int(found.get("trees", 0)), found.get("partition", ""),
                  tuple(unread))


def in_partition(wishes):
    """Options of coppicectl."""
    return ["--partition", wishes.partition] if wishes.partition else []
