# The sidecar and nothing else: no shell, no package manager, no user but 65532. Two builds of one commit hold the same binary.
#
#   docker build -t sidekeeper .
#   docker run --read-only -v sockets:/run/sidekeeper sidekeeper serve --zookeeper host:2181,…
FROM golang:1.26.8 AS build

WORKDIR /src
COPY go.mod go.sum ./
COPY gen/go.mod gen/go.sum gen/
COPY clients/go/go.mod clients/go/go.sum clients/go/
COPY tools/sbom tools/sbom
RUN go mod download && go mod download -modfile=tools/sbom/go.mod

# With .git, from which the binary knows its revision, and without the pages of traces that gRPC brings and the sidecar does not serve.
COPY . .
RUN CGO_ENABLED=0 go build -tags grpcnotrace -trimpath -buildvcs=true -ldflags='-s -w' -o /out/sidekeeper ./cmd/sidekeeper
RUN go tool -modfile=tools/sbom/go.mod cyclonedx-gomod bin -json -std -noserial -output /out/sbom.json /out/sidekeeper
RUN mkdir -p -m 0750 /out/run

FROM scratch

LABEL org.opencontainers.image.title="Sidekeeper" \
      org.opencontainers.image.description="Distributed locks, sequences, membership and configuration on ZooKeeper, over gRPC" \
      org.opencontainers.image.source="https://github.com/sidekeeper/sidekeeper" \
      org.opencontainers.image.licenses="Apache-2.0"

COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/sbom.json /usr/share/doc/sidekeeper/sbom.cdx.json
COPY --from=build --chown=65532:65532 /out/run /run/sidekeeper
COPY --from=build /out/sidekeeper /sidekeeper

USER 65532:65532
VOLUME /run/sidekeeper
HEALTHCHECK --interval=10s --timeout=5s CMD ["/sidekeeper", "health"]
ENTRYPOINT ["/sidekeeper"]
CMD ["serve"]
