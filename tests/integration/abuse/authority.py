"""Certificates for a test: an authority of its own and who has one from it. Made by openssl."""

import os
import subprocess


class Authority:
    def __init__(self, directory, names):
        """`directory` gets authority.pem and NAME.key and NAME.pem of each."""
        self.directory = directory
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-days", "2", "-subj", "/CN=authority", "-keyout", "authority.key",
                     "-out", "authority.pem")
        for name in names:
            self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                         "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".csr")
            with open(os.path.join(directory, name + ".ext"), "w", encoding="utf-8") as file:
                file.write("subjectAltName=IP:127.0.0.1\n")
            self.openssl("x509", "-req", "-in", name + ".csr", "-CA", "authority.pem", "-CAkey",
                         "authority.key", "-CAcreateserial", "-days", "2", "-extfile", name + ".ext",
                         "-out", name + ".pem")

    def files_of(self, name):
        """For one that is to be known by that name: authority, certificate and key, readable to all."""
        files = [os.path.join(self.directory, file) for file in ("authority.pem", name + ".pem", name + ".key")]
        for file in files:
            os.chmod(file, 0o644)
        return files

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60,
                       cwd=self.directory)
