# Both programs, for the charts of helm/ and for `docker run tidewatch tidewatch-adapter …`. From the checkout:
#
#     docker build -t tidewatch:0.1.0 --build-arg REVISION="$(git rev-parse HEAD)" .
#
# A build that can be repeated names its base by digest: --build-arg PYTHON=python:3.11-slim-bookworm@sha256:…
ARG PYTHON=python:3.11-slim-bookworm

FROM ${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
# Every package by its hash, as a wheel: no source is built but this one, so no compiler is needed.
COPY requirements.lock requirements-build.lock ./
RUN python -m venv --without-pip /opt/tidewatch \
    && pip install --no-deps --only-binary :all: --require-hashes -r requirements-build.lock \
    && pip --python /opt/tidewatch/bin/python install --no-compile --no-deps --only-binary :all: --require-hashes \
        -r requirements.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY adapter adapter
COPY recommender recommender
RUN pip wheel --no-index --no-deps --no-build-isolation --wheel-dir dist . \
    && pip --python /opt/tidewatch/bin/python install --no-compile --no-index --no-deps dist/*.whl
# The root file system is read-only when it runs, so what is not compiled here is compiled anew at each start. Of the
# package kubernetes that is what is never loaded: 50 MB.
RUN /opt/tidewatch/bin/python -m compileall -q -x '/kubernetes/(aio|client/(api|models))/' /opt/tidewatch/lib

FROM ${PYTHON}
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Tidewatch" \
      org.opencontainers.image.description="A Prometheus-native metrics adapter and recommender for Kubernetes" \
      org.opencontainers.image.source="https://github.com/tidewatch/tidewatch" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="${REVISION}"
# The base brings Python's library uncompiled. What installs packages is not needed any more.
RUN python -m compileall -q -x '/(idlelib|lib2to3|site-packages|tkinter|turtledemo)/' /usr/local/lib/python3.11 \
    && python -m pip uninstall --quiet --yes --root-user-action ignore setuptools wheel pip
COPY --from=build /opt/tidewatch /opt/tidewatch
# Where prometheus-adapter's image has its program, so that the image is all that its users change: its chart says
# `args: [/adapter, --config=…]`, other manifests `args: [--config=…]`. Whatever else is asked for is run as it stands.
# The dollars are the script's own.
# hadolint ignore=SC2016
RUN printf '%s\n' '#!/bin/sh' \
        'case "$1" in /adapter) shift ;; -*) ;; *) exec "$@" ;; esac' \
        'exec /opt/tidewatch/bin/tidewatch-adapter serve "$@"' >/adapter \
    && chmod 0755 /adapter
ENV PATH=/opt/tidewatch/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /
EXPOSE 6443 9180
# No init: `serve` handles its signals and reaps its children as process 1.
ENTRYPOINT ["/adapter"]
CMD ["tidewatch-adapter", "--help"]
