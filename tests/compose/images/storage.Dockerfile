# The S3 gateway, built from its Go module, with the ways of the image versity/versitygw.
ARG BASE
FROM ${BASE}
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends wget
COPY versitygw /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/versitygw"]
