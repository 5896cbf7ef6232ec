"""What an administrator may choose, in TOML; every key is in slurm.toml with its default."""

import dataclasses
import tomllib

DEFAULT_PATH = "/etc/coppice/slurm.toml"
# What any part of Coppice reads from the environment, as proto/text/environment.h has it.
VARIABLES = frozenset((
    "COPPICE_AGENT", "COPPICE_SERVER", "COPPICE_TLS_CA", "COPPICE_TLS_CERT", "COPPICE_TLS_KEY",
    "COPPICE_MUNGE", "COPPICE_MUNGE_REALM",
    "COPPICE_APPLICATION", "COPPICE_HOST", "COPPICE_PARTITION", "COPPICE_REORDER", "COPPICE_REORDER_BUDGET_MS",
    "COPPICE_START_TIMEOUT_MS", "COPPICE_TIMEOUT_MS", "COPPICE_TRACE", "COPPICE_TRACE_PUT",
    "COPPICE_TREES", "COPPICE_TREES_AFTER", "COPPICE_TREES_MAX_BYTES", "COPPICE_TREES_TYPE", "COPPICE_TREES_WAY",
    "COPPICE_VERBOSE",
    "COPPICE_HOSTFILE", "COPPICE_JOB", "COPPICE_PATIENCE", "COPPICE_SLURM_JOBS",
    "COPPICE_SLURM_NODE", "COPPICE_SLURM_STEERING", "COPPICE_TRY_BUILD", "COPPICE_TRY_DIR"))


class BadSettings(Exception):
    """Names the file and the key."""


@dataclasses.dataclass(frozen=True)
class Settings:
    server: str = "unix:/run/coppice/coppiced.sock"
    coppicectl: str = "/usr/bin/coppicectl"
    patience_s: float = 3.0
    retry_s: float = 15.0
    steer_s: float = 5.0
    poll_s: float = 1.0
    lease_s: float = 600.0
    accounts_s: float = 0.0
    state_dir: str = "/run/coppice-slurm"
    slurm_conf: str = ""
    log_file: str = ""

    def check(self):
        """The first key with a value that makes no sense, and what would; None if all do."""
        if self.patience_s <= 0 or self.poll_s <= 0:
            return "patience_s and poll_s are seconds, more than 0"
        if self.retry_s < 0 or self.steer_s < 0 or self.accounts_s < 0:
            return "retry_s, steer_s and accounts_s are seconds, not negative"
        if not 10 <= self.lease_s <= 86400:
            return "lease_s is 10 s to 86400 s"
        return None


def unknown_variables(environment):
    """A line for each variable that is named as Coppice's and that nothing reads: a typing error, most likely."""
    return [f"{name}: nothing reads a variable of this name; check its spelling" for name in environment
            if name.startswith("COPPICE_") and not name.startswith("COPPICE_TEST_") and name not in VARIABLES]


def load(path):
    """Settings of the file; the defaults if there is none. BadSettings."""
    try:
        with open(path, "rb") as file:
            given = tomllib.load(file)
    except FileNotFoundError:
        given = {}
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadSettings(f"{path}: {error}") from error
    kinds = {field.name: type(field.default) for field in dataclasses.fields(Settings)}
    for key, value in given.items():
        if key not in kinds:
            raise BadSettings(f"{path}: {key} is no setting; there are {', '.join(kinds)}")
        if kinds[key] is float and type(value) is int:
            given[key] = value = float(value)
        if type(value) is not kinds[key]:
            raise BadSettings(f"{path}: {key} takes a {kinds[key].__name__}")
    settings = Settings(**given)
    wrong = settings.check()
    if wrong is not None:
        raise BadSettings(f"{path}: {wrong}")
    return settings
