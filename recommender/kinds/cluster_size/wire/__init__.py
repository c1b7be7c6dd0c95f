"""Messages of Cluster Autoscaler's gRPC protocols, as protobuf.

The modules `…_pb2` and their types are made from the .proto files here; `tests` compare them. To generate them again:

    python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. recommender/kinds/cluster_size/wire/*.proto

They need the packages of the extra `grpc`, so nothing imports them before a configuration needs them.
"""
