"""Metrics of queues and stores that workloads share: Kafka, RabbitMQ, Redis, NATS, Celery and PostgreSQL."""

from __future__ import annotations

from typing import Final

from adapter.foundation.exporters.known_metrics import SeriesType, external_metrics

_GAUGE: Final = SeriesType.GAUGE
_KAFKA: Final = "let the exporter read consumer groups: its account needs the right to describe them"
_RABBITMQ: Final = (
    "turn on `return_per_object_metrics` in RabbitMQ, or scrape /metrics/per-object: without it, all "
    "queues are one number"
)
_KEYS: Final = "run redis_exporter with `--check-keys` for the keys of your queues"
_STREAMS: Final = "run redis_exporter with `--check-streams`"
_JETSTREAM: Final = "run prometheus-nats-exporter with `-jsz=all`"
_CELERY: Final = "run celery-exporter with access to the broker"
_PENDING: Final = "messages that a consumer of JetStream has not received yet"

BROKERS: Final = (
    *external_metrics(
        "kafka",
        ("consumergroup", "topic"),
        _KAFKA,
        ("kafka_consumergroup_lag", _GAUGE, "messages that a consumer group has not read yet (kafka_exporter)"),
    ),
    *external_metrics(
        "kafka",
        ("group_id", "topic_name"),
        _KAFKA,
        ("kminion_kafka_consumer_group_topic_lag", _GAUGE, "messages that a consumer group has not read yet (KMinion)"),
    ),
    *external_metrics(
        "rabbitmq",
        ("queue", "vhost"),
        _RABBITMQ,
        ("rabbitmq_queue_messages_ready", _GAUGE, "messages that wait in a queue"),
        ("rabbitmq_detailed_queue_messages_ready", _GAUGE, "messages that wait in a queue (/metrics/detailed)"),
        (
            "rabbitmq_queue_messages",
            _GAUGE,
            "messages in a queue, those that consumers have not acknowledged included",
        ),
    ),
    *external_metrics("redis", ("key", "db"), _KEYS, ("redis_key_size", _GAUGE, "entries of a list, set or stream")),
    *external_metrics(
        "redis",
        ("group", "stream"),
        _STREAMS,
        ("redis_stream_group_lag", _GAUGE, "entries of a stream that were not delivered to a consumer group yet"),
    ),
    *external_metrics("redis", ("stream", "db"), _STREAMS, ("redis_stream_length", _GAUGE, "entries of a stream")),
    *external_metrics(
        "nats",
        ("consumer_name", "stream_name"),
        _JETSTREAM,
        ("jetstream_consumer_num_pending", _GAUGE, _PENDING),
        ("nats_consumer_num_pending", _GAUGE, _PENDING),
    ),
    *external_metrics(
        "celery", ("queue_name", "queue"), _CELERY, ("celery_queue_length", _GAUGE, "tasks that wait in a queue")
    ),
    *external_metrics(
        "postgres",
        ("datname", "state"),
        "let postgres_exporter collect `pg_stat_activity`",
        ("pg_stat_activity_count", _GAUGE, "connections of a database by state"),
    ),
    *external_metrics(
        "postgres",
        ("datname",),
        "let postgres_exporter collect `pg_stat_database`",
        ("pg_stat_database_numbackends", _GAUGE, "connections of a database"),
    ),
)
"""The metrics, in the order in which a rule file lists them."""
