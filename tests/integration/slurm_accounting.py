"""Slurm's accounting for a test, the real one: slurmdbd on a MariaDB of its own, in the scratch directory of a
SlurmCluster. MariaDB listens at a socket there and at no port, slurmdbd at a port of the cluster's."""

import os
import shutil
import subprocess

from slurm_cluster import PATIENCE_S, wait_until

# Lines of slurm.conf. Jobs have only accounts that their users are in.
SETTINGS = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={accounting_port}
AccountingStoragePass={directory}/munge/socket
AccountingStorageEnforce=associations
"""

CONFIGURATION = """\
AuthType=auth/munge
AuthInfo=socket={directory}/munge/socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageUser=root
StorageLoc=slurm
LogFile={directory}/slurmdbd.log
PidFile={directory}/slurmdbd.pid
"""


class SlurmAccounting:
    def __init__(self, cluster):
        """`cluster` was made with SETTINGS, and has a munged."""
        self.cluster = cluster
        self.socket = cluster.path("mariadb.sock")
        cluster.environment["MYSQL_UNIX_PORT"] = self.socket
        path = cluster.path("slurmdbd.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(directory=cluster.directory, port=cluster.accounting_port))
        os.chmod(path, 0o600)

    def start(self):
        """Both, and the cluster is known."""
        data = self.cluster.path("mariadb")
        subprocess.run(["mariadb-install-db", "--no-defaults", "--user=root", "--datadir=" + data, "--skip-test-db",
                        "--auth-root-authentication-method=normal", "--innodb-log-file-size=8M"],
                       check=True, capture_output=True, timeout=PATIENCE_S)
        self.cluster.launch("mariadbd", shutil.which("mariadbd", path="/usr/sbin:/usr/bin"), "--no-defaults",
                            "--user=root", "--datadir=" + data, "--socket=" + self.socket,
                            "--pid-file=" + self.cluster.path("mariadb.pid"), "--skip-networking",
                            "--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M",
                            "--innodb-flush-log-at-trx-commit=0")
        wait_until(lambda: os.path.exists(self.socket), lambda: self.cluster.said("mariadbd"))
        self.start_slurmdbd()
        self.change("add", "cluster", self.cluster.name)
        return self

    def start_slurmdbd(self):
        self.cluster.launch("slurmdbd", "/usr/sbin/slurmdbd", "-D")
        wait_until(lambda: self.cluster.run("sacctmgr", "-n", "show", "cluster", check=False)[0] == 0,
                   lambda: self.cluster.said("slurmdbd"))

    def change(self, *words):
        self.cluster.run("sacctmgr", "--immediate", *words)
