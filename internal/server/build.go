package server

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// A Build is what a binary knows of itself.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
}

func (b Build) String() string {
	return fmt.Sprintf("sidekeeper %s, revision %s, %s", b.Version, b.Revision, b.Go)
}

// ThisBuild is that of this process.
func ThisBuild() Build {
	info, known := debug.ReadBuildInfo()
	if !known {
		info = &debug.BuildInfo{}
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	revision := cmp.Or(settings["vcs.revision"], "unknown")
	if settings["vcs.modified"] == "true" {
		revision += " and changes"
	}
	return Build{cmp.Or(info.Main.Version, "unknown"), revision, cmp.Or(info.GoVersion, "unknown")}
}

// buildInfo is a metric that joins the version to all others of its process.
func buildInfo() prometheus.Collector {
	build := ThisBuild()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "1; the labels tell which build runs.",
		ConstLabels: prometheus.Labels{"version": build.Version, "revision": build.Revision, "go_version": build.Go},
	}, func() float64 { return 1 })
}
