FROM gym-sandbox/busybox:test AS base
ARG WHO
RUN echo $WHO > /made && cp /etc/hosts /hosts

FROM base AS chosen
COPY kept /copied

FROM base AS never
RUN false
