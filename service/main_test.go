package service_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/service"
)

func TestMain(m *testing.M) {
	service.StartServer = startServer
	goleak.VerifyTestMain(m)
}

func startServer(
	settings service.ServerSettings, services *service.Services, ensemble service.Ensemble,
) (addresses []string, serve func(context.Context) error, err error) {
	started, err := server.New(server.Options{
		Listen: settings.Listen, SocketMode: 0o660, OperatorListen: settings.OperatorListen,
		KeepaliveTime: time.Second, KeepaliveTimeout: 500 * time.Millisecond, MaxStreams: 1024,
		SilenceTimeout: 5 * time.Second, Log: settings.Log, Metrics: server.NewMetrics(),
	}, services, ensemble)
	if err != nil {
		return nil, nil, err
	}
	return started.Addresses(), started.Serve, nil
}
