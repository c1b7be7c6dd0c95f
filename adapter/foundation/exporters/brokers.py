"""Metrics of queues and stores that workloads share: Kafka, RabbitMQ, Redis, NATS, Celery and PostgreSQL."""

from __future__ import annotations

from typing import Final

from adapter.foundation.exporters.known_metrics import KnownMetric, MetricSubject, SeriesType


def _gauge(exporter: str, series: str, meaning: str, labels: tuple[str, ...], repair: str) -> KnownMetric:
    return KnownMetric(
        exporter=exporter,
        series=series,
        type=SeriesType.GAUGE,
        meaning=meaning,
        subject=MetricSubject.EXTERNAL,
        labels=labels,
        repair=repair,
    )


_KAFKA: Final = "let the exporter read consumer groups: its account needs the right to describe them"
_RABBITMQ: Final = (
    "turn on `return_per_object_metrics` in RabbitMQ, or scrape /metrics/per-object: without it, all "
    "queues are one number"
)
_STREAMS: Final = "run redis_exporter with `--check-streams`"
_JETSTREAM: Final = "run prometheus-nats-exporter with `-jsz=all`"

BROKERS: Final = (
    _gauge(
        "kafka",
        "kafka_consumergroup_lag",
        "messages that a consumer group has not read yet (kafka_exporter)",
        ("consumergroup", "topic"),
        _KAFKA,
    ),
    _gauge(
        "kafka",
        "kminion_kafka_consumer_group_topic_lag",
        "messages that a consumer group has not read yet (KMinion)",
        ("group_id", "topic_name"),
        _KAFKA,
    ),
    _gauge("rabbitmq", "rabbitmq_queue_messages_ready", "messages that wait in a queue", ("queue", "vhost"), _RABBITMQ),
    _gauge(
        "rabbitmq",
        "rabbitmq_detailed_queue_messages_ready",
        "messages that wait in a queue (/metrics/detailed)",
        ("queue", "vhost"),
        _RABBITMQ,
    ),
    _gauge(
        "rabbitmq",
        "rabbitmq_queue_messages",
        "messages in a queue, those that consumers have not acknowledged included",
        ("queue", "vhost"),
        _RABBITMQ,
    ),
    _gauge(
        "redis",
        "redis_key_size",
        "entries of a list, set or stream",
        ("key", "db"),
        "run redis_exporter with `--check-keys` for the keys of your queues",
    ),
    _gauge(
        "redis",
        "redis_stream_group_lag",
        "entries of a stream that were not delivered to a consumer group yet",
        ("group", "stream"),
        _STREAMS,
    ),
    _gauge("redis", "redis_stream_length", "entries of a stream", ("stream", "db"), _STREAMS),
    _gauge(
        "nats",
        "jetstream_consumer_num_pending",
        "messages that a consumer of JetStream has not received yet",
        ("consumer_name", "stream_name"),
        _JETSTREAM,
    ),
    _gauge(
        "nats",
        "nats_consumer_num_pending",
        "messages that a consumer of JetStream has not received yet",
        ("consumer_name", "stream_name"),
        _JETSTREAM,
    ),
    _gauge(
        "celery",
        "celery_queue_length",
        "tasks that wait in a queue",
        ("queue_name", "queue"),
        "run celery-exporter with access to the broker",
    ),
    _gauge(
        "postgres",
        "pg_stat_activity_count",
        "connections of a database by state",
        ("datname", "state"),
        "let postgres_exporter collect `pg_stat_activity`",
    ),
    _gauge(
        "postgres",
        "pg_stat_database_numbackends",
        "connections of a database",
        ("datname",),
        "let postgres_exporter collect `pg_stat_database`",
    ),
)
"""The metrics, in the order in which a rule file lists them."""
