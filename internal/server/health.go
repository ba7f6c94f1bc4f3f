package server

import (
	"context"

	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sidekeeper/sidekeeper/service"
)

// readiness is what health checks ask for to learn whether locks can be had, that is, whether the ensemble answers. The
// services' own names say the same. The empty name says only that the process runs.
const readiness = "sidekeeper.readiness"

// follow keeps the health of these services what the ensemble's is, until ctx ends.
func follow(ctx context.Context, server *health.Server, ensemble service.Reachability, services []string) {
	for {
		reachable, changed := ensemble.Reachable()
		announce(server, reachable, services)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func announce(server *health.Server, serving bool, services []string) {
	for _, name := range services {
		server.SetServingStatus(name, servingStatus(serving))
	}
}

// A healthService ends a Watch of a service that there is not, since there never will be: NOT_FOUND, as Check does.
type healthService struct{ *health.Server }

// Watch implements healthpb.HealthServer.
func (h healthService) Watch(request *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	if _, err := h.Check(stream.Context(), request); err != nil {
		return err
	}
	return h.Server.Watch(request, stream)
}

func servingStatus(serving bool) healthpb.HealthCheckResponse_ServingStatus {
	if serving {
		return healthpb.HealthCheckResponse_SERVING
	}
	return healthpb.HealthCheckResponse_NOT_SERVING
}
