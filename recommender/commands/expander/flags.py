"""The flags of `tidewatch-recommender expander`."""

from __future__ import annotations

from adapter.foundation.options.logs import LOG_FLAGS
from adapter.foundation.service.flags.table import ADDRESS, PATH, TEXT, CommandFlags, Flag
from recommender.commands.program import PROGRAM

EXPANDER = CommandFlags(
    program=f"{PROGRAM} expander",
    summary=(
        "Tells Cluster Autoscaler which node group should grow, by the expanders, priorities and prices of a "
        "configuration. Start Cluster Autoscaler with --expander=grpc, --grpc-expander-url and --grpc-expander-cert. "
        "It needs the packages of tidewatch[grpc]."
    ),
    examples=(
        f"{PROGRAM} expander --config recommender.yaml --listen 127.0.0.1:7000",
        f"{PROGRAM} expander --config recommender.yaml --listen :7000 --tls-cert-file C --tls-private-key-file K",
    ),
    flags=(
        Flag("config", PATH, "The configuration file, which is followed.", required=True),
        Flag("recommendation", TEXT, "The entry with clusterSize whose expanders decide, if the file has several."),
        Flag("listen", ADDRESS, "Where to listen; :0 takes a free port and logs it.", required=True),
        Flag("tls-cert-file", PATH, "Certificate of this server; without it, only loopback is served."),
        Flag("tls-private-key-file", PATH, "Key of the certificate."),
        Flag(
            "client-ca-file",
            PATH,
            "CA certificates for those of clients, which then need one. Cluster Autoscaler presents none.",
        ),
        *LOG_FLAGS,
    ),
)
