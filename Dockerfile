# The sidecar and nothing else: no shell, no package manager, no user but 65532.
FROM golang:1.26 AS build

WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download

COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/sidekeeper ./cmd/sidekeeper
RUN mkdir -p -m 0750 /out/run

FROM scratch

COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build --chown=65532:65532 /out/run /run/sidekeeper
COPY --from=build /out/sidekeeper /sidekeeper

USER 65532:65532
ENTRYPOINT ["/sidekeeper"]
CMD ["serve"]
