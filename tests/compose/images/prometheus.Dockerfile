# Debian's Prometheus, with the ways of the image prom/prometheus.
ARG BASE
FROM ${BASE}
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus wget \
 && install --directory --owner=65534 /prometheus
USER 65534
VOLUME /prometheus
ENTRYPOINT ["/usr/bin/prometheus"]
