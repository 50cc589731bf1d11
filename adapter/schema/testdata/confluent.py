"""Reads payloads with Confluent's deserializers and writes the same values with its serializers. See interop_test.go."""

import base64
import json
import sys

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

question = json.load(sys.stdin)
client = SchemaRegistryClient({"url": question["url"]})
context = SerializationContext("orders", MessageField.VALUE)
names = {"subject.name.strategy": lambda _, record: record and question["prefix"] + record}

value = AvroDeserializer(client, conf=names)(bytes.fromhex(question["avro"]), context)
written = AvroSerializer(client, question["schema"], conf=names)(value, context)
answer = {"value": value, "avro": written.hex(), "protobuf": []}

pool = DescriptorPool()
for file in question["files"]:
    pool.Add(descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(file)))
for case in question["protobuf"]:
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(case["type"]))
    value = ProtobufDeserializer(message, names, client)(bytes.fromhex(case["payload"]), context)
    written = ProtobufSerializer(message, client, names)(value, context)
    answer["protobuf"].append(
        {"type": case["type"], "value": json_format.MessageToDict(value), "payload": written.hex()}
    )
json.dump(answer, sys.stdout)
