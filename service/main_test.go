package service_test

import (
	"context"
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/service"
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil { // the default, since most tests wait and few compute
		panic(err)
	}
	goleak.VerifyTestMain(twice{m})
}

type twice struct{ once *testing.M }

func (t twice) Run() int { return runTwice(t.once.Run) }

// untended are services that look at no claims by themselves: tests count what is asked of the ensemble, and when. Those of claims tend them.
type untended struct{ *service.Services }

func (untended) Tend(context.Context) {}

func startServer(
	settings serverSettings, services *service.Services, ensemble service.Ensemble,
) (addresses []string, serve func(context.Context) error, err error) {
	started, err := server.New(server.Options{
		Inside: settings.Inside, AllOperate: settings.Inside != nil,
		Listen: settings.Listen, SocketMode: 0o660, OperatorListen: settings.OperatorListen,
		KeepaliveTime: time.Minute, KeepaliveTimeout: time.Minute, MaxStreams: 1024,
		SilenceTimeout: 5 * time.Second, Log: settings.Log, Metrics: server.NewMetrics(),
	}, untended{services}, ensemble)
	if err != nil {
		return nil, nil, err
	}
	return started.Addresses(), started.Serve, nil
}
