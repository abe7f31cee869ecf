# Apache Kafka from its Maven jars, with the ways of the image apache/kafka: the same class reads KAFKA_*.
ARG BASE
FROM ${BASE}
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless
COPY kafka-jars /opt/kafka/libs
RUN useradd --system --uid 1000 appuser \
 && mkdir -p /etc/kafka/docker /mnt/shared/config /opt/kafka/config /var/lib/kafka/data \
 && touch /etc/kafka/docker/server.properties /etc/kafka/docker/log4j2.yaml /etc/kafka/docker/tools-log4j2.yaml \
 && chown -R appuser /mnt/shared/config /opt/kafka/config /var/lib/kafka
COPY kafka-run /etc/kafka/docker/run
USER appuser
VOLUME /var/lib/kafka/data
CMD ["/etc/kafka/docker/run"]
