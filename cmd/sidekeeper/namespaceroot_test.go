package main

import (
	"path"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/inject"
	"github.com/sidekeeper/sidekeeper/internal/server"
)

func TestNoNamespacesRootIsADirectoryOfAnothersRoot(t *testing.T) {
	t.Parallel()
	pattern, err := inject.ReadPattern(chartPattern(t, "cert-manager"), checkArguments)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parsed(nil, "--zookeeper", "localhost:1", "--root", pattern.RootPerNamespace)
	if err != nil {
		t.Fatal(err)
	}
	metrics := server.NewMetrics()
	options := reflect.ValueOf(s.serviceOptions(zap.NewNop(), audit{}, metrics, s.serverOptions(zap.NewNop(), audit{}, metrics, traces{}).Limits))
	const pod = `{"metadata": {"annotations": {"sidekeeper.io/inject": "true"}}, "spec": {"containers": [{"name": "web"}]}}`
	for i := range options.NumField() {
		if !strings.HasSuffix(options.Type().Field(i).Name, "Root") {
			continue
		}
		directory := options.Field(i).String()
		_, _, err := pattern.Patch([]byte(pod), path.Base(directory), checkArguments)
		if path.Dir(directory) != pattern.RootPerNamespace || err == nil || !strings.Contains(err.Error(), "the pod's namespace is ") {
			t.Errorf("a namespace has the root %s: %v", directory, err)
		}
	}
	if patch, _, err := pattern.Patch([]byte(pod), "shop", checkArguments); patch == nil || err != nil {
		t.Errorf("another namespace: %s, %v", patch, err)
	}
}
