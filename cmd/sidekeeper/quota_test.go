package main

import (
	"os"
	"strings"
	"testing"
)

func TestQuotasAreSetListedAndRemovedByCommands(t *testing.T) {
	t.Parallel()
	s, welcome := develop(t)
	defer func() {
		s.signal(os.Interrupt)
		s.ends()
	}()
	ensemble := said(t, welcome, `ensemble:  (\S+), `)
	const billing, stock = "/sidekeeper/config/billing", "/sidekeeper/config/stock"
	for _, c := range []struct {
		command string
		code    int
		output  string
	}{
		{"set " + billing + " --nodes 10", 0, ""},
		{"set " + billing + " --bytes 2000", 0, ""},
		{"set " + stock + " --nodes 5 --bytes 0", 0, ""},
		{"ls", 0, "" +
			"PATH                        NODES  MAX-NODES  BYTES  MAX-BYTES\n" +
			"/sidekeeper/config/billing  0      -          0      2000\n" +
			"/sidekeeper/config/stock    0      5          0      0\n"},
		{
			"ls /sidekeeper/config/stock --output json", 0,
			`[{"path":"/sidekeeper/config/stock","max":{"nodes":5,"bytes":0},"used":{"nodes":0,"bytes":0}}]` + "\n",
		},
		{"set /sidekeeper --nodes 5", 1, "sidekeeper: quotas cannot lie in one another: " + billing + " has one\n"},
		{"rm " + billing, 0, ""},
		{"rm " + billing, 1, "sidekeeper: no quota\n"},
		{"set " + billing, 64, "sidekeeper: --nodes or --bytes is required, and neither is negative\n"},
		{"set billing --nodes 5", 64, `sidekeeper: PATH is "billing": ` + nodePathRule + "\n"},
		{"set /zookeeper/quota --nodes 5", 64, `sidekeeper: PATH is "/zookeeper/quota": ` + nodePathRule + "\n"},
	} {
		args := append([]string{"quota"}, strings.Fields(c.command)...)
		stdout, stderr, code := output(t, append(args, "--zookeeper", ensemble)...)
		if got := stdout + stderr; code != c.code || got != c.output {
			t.Errorf("%s: exits with %d and says %q, want %d and %q", c.command, code, got, c.code, c.output)
		}
	}
}
