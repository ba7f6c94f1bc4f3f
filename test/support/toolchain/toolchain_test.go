package toolchain

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestAProgramThatNoModuleHoldsIsRefused(t *testing.T) {
	if _, err := Program(t.Context(), "kubectl"); err == nil || !strings.Contains(err.Error(), "kubectl is no program of tools/") {
		t.Errorf("got %v", err)
	}
}

func TestEveryProgramIsTheToolOfItsModule(t *testing.T) {
	root, err := repository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range programs {
		output, err := run(t.Context(), filepath.Join(root, "tools", name), "mod", "edit", "-json")
		if err != nil {
			t.Errorf("tools/%s: %v", name, err)
			continue
		}
		var module struct{ Tool []struct{ Path string } }
		if err := json.Unmarshal(output, &module); err != nil {
			t.Fatal(err)
		}
		if len(module.Tool) != 1 || module.Tool[0].Path != program.path {
			t.Errorf("tools/%s has the tools %v, not %s", name, module.Tool, program.path)
		}
	}
}
