package ensemble

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A fakeMaven is a program that does what Maven is asked for, without a network.
const fakeMaven = `#!/bin/sh
PATH=/bin:/usr/bin
for argument; do
	case $argument in -DoutputDirectory=*) jars=${argument#*=} ;; esac
done
echo called >> "$CALLS"
mkdir "$jars" && touch "$jars/zookeeper-0.jar"
`

// bare gives the test an empty cache, and a PATH with nothing but the programs given.
func bare(t *testing.T, programs map[string]string) (cache string) {
	t.Helper()
	cache, path := t.TempDir(), t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	t.Setenv("PATH", path)
	t.Setenv(JarsVariable, "")
	nowhere := systemJars
	systemJars = filepath.Join(path, "java")
	t.Cleanup(func() { systemJars = nowhere })
	return cache
}

func TestJarsAreDownloadedOnceHoweverManyAskForThem(t *testing.T) {
	bare(t, map[string]string{"mvn": fakeMaven})
	calls := filepath.Join(t.TempDir(), "calls")
	t.Setenv("CALLS", calls)
	var asking sync.WaitGroup
	for range 5 {
		asking.Go(func() {
			path, err := classPath(context.Background())
			if err != nil || !exists(filepath.Join(filepath.Dir(path), "zookeeper-0.jar")) {
				t.Errorf("class path %q, %v", path, err)
			}
		})
	}
	asking.Wait()
	if text, err := os.ReadFile(calls); err != nil || string(text) != "called\n" {
		t.Errorf("Maven was %q, %v", text, err)
	}
}

func TestAFailedDownloadLeavesNothingBehindAndSaysWhatToInstall(t *testing.T) {
	cache := bare(t, map[string]string{"mvn": "#!/bin/sh\necho '[ERROR] no network'\nexit 1\n"})
	_, err := classPath(t.Context())
	for _, want := range []string{"no network", "apt-get install", JarsVariable} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %q in: %v", want, err)
		}
	}
	left, globErr := filepath.Glob(filepath.Join(cache, "sidekeeper", "*"))
	if globErr != nil || len(left) != 1 || filepath.Ext(left[0]) != ".lock" {
		t.Errorf("left: %v, %v", left, globErr)
	}
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("more than a line: %v", err)
	}
}

func TestTheSystemsJarsAreUsedIfMavenIsNotThere(t *testing.T) {
	bare(t, nil)
	if err := os.Mkdir(systemJars, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := classPath(t.Context()); err == nil {
		t.Error("an empty directory will do")
	}
	for _, name := range systemNames {
		write(t, filepath.Join(systemJars, name+".jar"), nil)
	}
	path, err := classPath(t.Context())
	if err != nil || strings.Count(path, systemJars) != len(systemNames) {
		t.Errorf("class path %q, %v", path, err)
	}
}

func TestAVariableNamesTheJars(t *testing.T) {
	directory := t.TempDir()
	t.Setenv(JarsVariable, directory)
	if _, err := classPath(t.Context()); err == nil || !strings.Contains(err.Error(), directory) {
		t.Errorf("an empty directory: %v", err)
	}
	write(t, filepath.Join(directory, "zookeeper-3.8.0.jar"), nil)
	path, err := classPath(t.Context())
	if err != nil || path != filepath.Join(directory, "*") {
		t.Errorf("class path %q, %v", path, err)
	}
}

func TestWithoutJavaTheErrorSaysWhatToInstall(t *testing.T) {
	bare(t, nil)
	t.Setenv("JAVA_HOME", "")
	t.Setenv("PATH", t.TempDir())
	_, err := Start(t.Context(), Options{})
	if err == nil || !strings.Contains(err.Error(), "apt-get install default-jre-headless") {
		t.Errorf("got %v", err)
	}
}

func TestTheProjectAsksMavenForTheVersionNamed(t *testing.T) {
	if !strings.Contains(string(pom), "<version>"+Version+"</version>") {
		t.Errorf("pom.xml has another version than %s", Version)
	}
}
