"""coppice/v1 for Python without generated files: the messages and methods that protoc describes."""

import glob
import os
import subprocess

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def describe(proto_folder, path):
    """Has protoc describe coppice/v1, all that it imports included, in the file `path`."""
    files = sorted(glob.glob(os.path.join(proto_folder, "coppice", "v1", "*.proto")))
    subprocess.run(["protoc", "-I", proto_folder, "--include_imports",
                    "--descriptor_set_out=" + path, *files], check=True, timeout=60)


class Protocol:
    def __init__(self, path):
        """`path`: a file of describe()."""
        self.pool = descriptor_pool.DescriptorPool()
        with open(path, "rb") as file:
            for described in descriptor_pb2.FileDescriptorSet.FromString(file.read()).file:
                self.pool.Add(described)

    def message(self, name):
        """The class of a message, as "CreateTreeRequest"."""
        return message_factory.MessageFactory(self.pool).GetPrototype(
            self.pool.FindMessageTypeByName("coppice.v1." + name))

    def method(self, name):
        """Of "Trees.CreateTree": its path in HTTP/2, classes of request and response, and whether
        the response is a stream."""
        service, method = name.split(".")
        found = self.pool.FindServiceByName("coppice.v1." + service).FindMethodByName(method)
        described = descriptor_pb2.MethodDescriptorProto()
        found.CopyToProto(described)
        return (f"/coppice.v1.{service}/{method}", self.message(found.input_type.name),
                self.message(found.output_type.name), described.server_streaming)
