# The image of both programs, for the charts in helm/ and for `docker run tidewatch tidewatch-adapter …`. To build it:
#
#     docker build -t tidewatch:0.2.0 --build-arg REVISION="$(git rev-parse HEAD)" .
#
# `--target adapter` holds tidewatch-adapter alone, without its command `nodes`; `--target nodes` holds that, too, and
# `--target readiness` nothing but the sidecar. For a reproducible build, name the base image by its digest:
# --build-arg PYTHON=python:3.11-slim-bookworm@sha256:…
ARG PYTHON=python:3.11-slim-bookworm

FROM ${PYTHON} AS wheel
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
# Every package is a wheel, verified by its hash. Only this project is built from source, so no compiler is needed.
COPY requirements.lock requirements-adapter.lock requirements-nodes.lock requirements-build.lock ./
RUN python -m venv --without-pip /opt/tidewatch \
    && pip install --no-deps --only-binary :all: --require-hashes -r requirements-build.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY adapter adapter
COPY recommender recommender
COPY completions completions
RUN pip wheel --no-index --no-deps --no-build-isolation --wheel-dir dist . \
    && pip --python /opt/tidewatch/bin/python install --no-compile --no-index --no-deps dist/*.whl

# The root file system is read-only at run time, so modules that are not compiled here are compiled again at each start.
FROM wheel AS readiness-files
WORKDIR /opt/tidewatch/lib/python3.11/site-packages
RUN rm -r recommender ../../../bin/tidewatch-recommender ../../../bin/kubectl-tidewatch && python -m compileall -q .

# Only the configuration, authentication and transport of the package kubernetes are loaded, and no package's tests.
FROM wheel AS adapter-files
RUN pip --python /opt/tidewatch/bin/python install --no-compile --no-deps --only-binary :all: --require-hashes \
        -r requirements-adapter.lock
WORKDIR /opt/tidewatch/lib/python3.11/site-packages
RUN rm -r recommender ../../../bin/tidewatch-recommender ../../../bin/kubectl-tidewatch \
    && rm -r kubernetes/aio kubernetes/client/api && find kubernetes/client/models -type f -name '[!_]*' -delete \
    && find . -type d -name tests -prune -exec rm -r {} + \
    && python -m compileall -q .

FROM adapter-files AS nodes-files
RUN pip --python /opt/tidewatch/bin/python install --no-compile --no-deps --only-binary :all: --require-hashes \
        -r /build/requirements-nodes.lock \
    && find . -type d -name tests -prune -exec rm -r {} + \
    && python -m compileall -q .

FROM wheel AS all-files
RUN pip --python /opt/tidewatch/bin/python install --no-compile --no-deps --only-binary :all: --require-hashes \
        -r requirements.lock
WORKDIR /opt/tidewatch/lib/python3.11/site-packages
RUN rm -r kubernetes/aio kubernetes/client/api && find kubernetes/client/models -type f -name '[!_]*' -delete \
    && find . -type d -name tests -prune -exec rm -r {} + \
    && python -m compileall -q .

FROM ${PYTHON} AS runtime
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Tidewatch" \
      org.opencontainers.image.description="A Prometheus-native metrics adapter and recommender for Kubernetes" \
      org.opencontainers.image.source="https://github.com/tidewatch/tidewatch" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.revision="${REVISION}"
# The base image contains Python's library uncompiled. The tools that install packages are no longer needed.
RUN python -m compileall -q -x '/(idlelib|lib2to3|site-packages|tkinter|turtledemo)/' /usr/local/lib/python3.11 \
    && python -m pip uninstall --quiet --yes --root-user-action ignore setuptools wheel pip
# One entrypoint, so that users of four other programs only change the image. Their manifests name the program's path as
# `command` or as the first of `args` (/adapter of prometheus-adapter, /cluster-proportional-autoscaler, /cpvpa of its
# vertical sibling, /pod_nanny of addon-resizer), or have flags alone: --target and --configmap together are
# cluster-proportional-autoscaler's, --target with a configuration its sibling's, and --deployment addon-resizer's. Any
# other command is run unchanged.
# The dollar signs belong to the script.
# hadolint ignore=SC2016
RUN printf '%s\n' '#!/bin/sh' \
        'name=${0##*/} bin=/opt/tidewatch/bin target= configmap= config=' \
        'case "$1" in /adapter|/cluster-proportional-autoscaler|/cpvpa|/pod_nanny) name=${1#/}; shift ;; esac' \
        'if [ "$name" = tidewatch ]; then' \
        '    case "$1" in "") exec "$bin/tidewatch-adapter" --help ;; -*) name=adapter ;; *) exec "$@" ;; esac' \
        '    for flag; do case "$flag" in' \
        '        --target|--target=*) target=1 ;; --configmap|--configmap=*) configmap=1 ;;' \
        '        --default-config|--default-config=*|--config-file|--config-file=*) config=1 ;;' \
        '        --deployment|--deployment=*) name=pod_nanny ;;' \
        '    esac; done' \
        '    [ -z "$target" ] || [ -z "$config" ] || name=cpvpa' \
        '    [ -z "$target" ] || [ -z "$configmap" ] || name=cluster-proportional-autoscaler' \
        'fi' \
        'if ! [ "$name" = adapter -o -x "$bin/tidewatch-recommender" ]; then' \
        '    echo "tidewatch: this image has no tidewatch-recommender: use the one that is built without --target" >&2' \
        '    exit 2' \
        'fi' \
        'case "$name" in' \
        '    adapter) exec "$bin/tidewatch-adapter" serve "$@" ;;' \
        '    cpvpa) exec "$bin/tidewatch-recommender" cpva "$@" ;;' \
        '    pod_nanny) exec "$bin/tidewatch-recommender" pod-nanny "$@" ;;' \
        '    *) exec "$bin/tidewatch-recommender" proportional "$@" ;;' \
        'esac' >/tidewatch \
    && chmod 0755 /tidewatch \
    && ln -s tidewatch /adapter \
    && ln -s tidewatch /cluster-proportional-autoscaler \
    && ln -s tidewatch /cpvpa \
    && ln -s tidewatch /pod_nanny
ENV PATH=/opt/tidewatch/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /
# The adapter: HTTPS, and metrics. The recommender: metrics and health, and the page. The readiness sidecar: the probe.
# The load of nodes: its API.
EXPOSE 6443 9180 8080 8081 8089 2020
# No init is needed: as process 1, each program handles its signals and reaps its children.
ENTRYPOINT ["/tidewatch"]
CMD ["tidewatch-adapter", "--help"]

FROM runtime AS readiness
COPY --from=readiness-files /opt/tidewatch /opt/tidewatch

FROM runtime AS adapter
COPY --from=adapter-files /opt/tidewatch /opt/tidewatch

FROM runtime AS nodes
COPY --from=nodes-files /opt/tidewatch /opt/tidewatch

FROM runtime AS all
COPY --from=all-files /opt/tidewatch /opt/tidewatch
