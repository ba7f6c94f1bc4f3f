package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestTheChartHasABarForEachRateAsLongAsItIsFast(t *testing.T) {
	filled := &table{header: []string{"", "p50 µs", "pairs/s"}}
	filled.add("floor", "1", "8000")
	filled.add("sidecar, lease", "1", "2000")
	drawn, err := findings{{"pairs-1", standalone, filled}, {"pairs-64", standalone, filled}, {"pairs-64", onEnsemble, filled}}.chart()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`class="other" x="160" y="86" width="200.0"`, `class="ours" x="160" y="112" width="50.0"`, `class="ours" x="450" y="112" width="50.0"`,
		">2000</text>", ">sidecar, lease</text>", ">an ensemble of three</text>",
	} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %s in\n%s", want, drawn)
		}
	}
	for decoder := xml.NewDecoder(strings.NewReader(drawn)); err == nil; {
		_, err = decoder.Token()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if _, err := (findings{{"pairs-1", standalone, filled}}).chart(); err == nil {
		t.Error("there is a chart of what was not measured")
	}
}
