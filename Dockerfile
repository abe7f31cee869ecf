# Every part of Sceneloom that is not somebody else's: workers, gateway, monitor, and the command line.
# The image runs as a user without rights and needs only /data and /tmp to be writable.
ARG PYTHON_IMAGE=python:3.11.13-slim-bookworm

# What we depend on changes rarely: a layer of its own, each package pinned and checked by its hash.
FROM ${PYTHON_IMAGE} AS packages
RUN python3 -m venv /opt/sceneloom
ENV PATH=/opt/sceneloom/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements.lock /tmp/
RUN pip install --require-hashes -r /tmp/requirements.lock

# Our own code, as a wheel made by the build tools of the lock file.
FROM packages AS code
WORKDIR /src
COPY requirements-dev.lock ./
RUN awk '/^[a-z]/ {wanted = /^(hatchling|packaging|pathspec|pluggy|tomlkit|trove-classifiers)==/} wanted' \
      requirements-dev.lock > build.lock \
 && pip install --require-hashes -r build.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY examples/lighthouse.yaml examples/
COPY agents agents
COPY models models
COPY tables tables
COPY sceneloom sceneloom
RUN pip install --no-deps --no-build-isolation --prefix /opt/code .

FROM ${PYTHON_IMAGE}
RUN groupadd --system --gid 10001 sceneloom \
 && useradd --system --uid 10001 --gid 10001 --home-dir /data sceneloom \
 && install --directory --owner=10001 --group=10001 /data
COPY --from=packages /opt/sceneloom /opt/sceneloom
COPY docker/probe /usr/local/bin/
COPY --from=code /opt/code /opt/sceneloom
ENV PATH=/opt/sceneloom/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    SCENELOOM_DATA_FOLDER=/data \
    SCENELOOM_LOG_FORMAT=json \
    SCENELOOM_METRICS_HOST=0.0.0.0 \
    SCENELOOM_METRICS_PORT=9309
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 9309
# Of a worker. Recovery is no failure: who routes work asks /ready, who restarts asks /live.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["probe", "http://127.0.0.1:9309/live"]
ENTRYPOINT ["sceneloom"]
CMD ["worker"]
