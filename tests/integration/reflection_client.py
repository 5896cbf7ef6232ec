"""A gRPC client that knows nothing of a server's protocol but what its reflection (v1alpha) tells."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

TIMEOUT_S = 60
STRING, BYTES, MESSAGE = 9, 12, 11  # FieldDescriptorProto.Type


def reflection_pool():
    """The reflection protocol, which Debian does not package, described by hand."""
    file = descriptor_pb2.FileDescriptorProto(
        name="reflection_v1alpha.proto", package="grpc.reflection.v1alpha", syntax="proto3")

    def message(name, *fields):
        made = file.message_type.add(name=name)
        for field, number, kind, label, type_name in fields:
            made.field.add(name=field, number=number, type=kind, label=label,
                           type_name=type_name and ".grpc.reflection.v1alpha." + type_name)

    one, many = 1, 3
    message("ServerReflectionRequest", ("host", 1, STRING, one, None),
            ("file_containing_symbol", 4, STRING, one, None),
            ("list_services", 7, STRING, one, None))
    message("FileDescriptorResponse", ("file_descriptor_proto", 1, BYTES, many, None))
    message("ServiceResponse", ("name", 1, STRING, one, None))
    message("ListServiceResponse", ("service", 1, MESSAGE, many, "ServiceResponse"))
    message("ServerReflectionResponse",
            ("file_descriptor_response", 4, MESSAGE, one, "FileDescriptorResponse"),
            ("list_services_response", 6, MESSAGE, one, "ListServiceResponse"))
    # The request's alternatives form a oneof, so that an empty list_services is sent at all.
    request = file.message_type[0]
    request.oneof_decl.add(name="message_request")
    for field in request.field[1:]:
        field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def message_class(pool, name):
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(name))


class Reflection:
    def __init__(self, channel):
        pool = reflection_pool()
        self.request = message_class(pool, "grpc.reflection.v1alpha.ServerReflectionRequest")
        response = message_class(pool, "grpc.reflection.v1alpha.ServerReflectionResponse")
        self.call = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            request_serializer=self.request.SerializeToString,
            response_deserializer=response.FromString)

    def ask(self, **question):
        return next(self.call(iter([self.request(**question)]), timeout=TIMEOUT_S))

    def services(self):
        return [s.name for s in self.ask(list_services="*").list_services_response.service]

    def pool_of(self, *symbols):
        """A pool of all files that define the symbols, dependencies first."""
        files = {}
        for symbol in symbols:
            answer = self.ask(file_containing_symbol=symbol).file_descriptor_response
            for data in answer.file_descriptor_proto:
                file = descriptor_pb2.FileDescriptorProto.FromString(data)
                files[file.name] = file
        pool = descriptor_pool.DescriptorPool()
        added = set()

        def add(name):
            if name not in added:
                added.add(name)
                for dependency in files[name].dependency:
                    add(dependency)
                pool.Add(files[name])

        for name in files:
            add(name)
        return pool


class Service:
    """Methods of one service as Python functions that take fields and return messages, or, where
    the server streams, iterate over them."""

    def __init__(self, channel, pool, name):
        for method in pool.FindServiceByName(name).methods:
            request = message_class(pool, method.input_type.full_name)
            response = message_class(pool, method.output_type.full_name)
            described = descriptor_pb2.MethodDescriptorProto()
            method.CopyToProto(described)
            kind = channel.unary_stream if described.server_streaming else channel.unary_unary
            call = kind(f"/{name}/{method.name}", request_serializer=request.SerializeToString,
                        response_deserializer=response.FromString)
            setattr(self, method.name,
                    lambda call=call, request=request, **fields: call(request(**fields),
                                                                      timeout=TIMEOUT_S))
