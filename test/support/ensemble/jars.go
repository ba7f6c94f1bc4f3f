package ensemble

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Version is the ZooKeeper the package gets by itself.
const Version = "3.9.5"

// JarsVariable names the environment variable with the directory of jars to use in place of those the package finds.
const JarsVariable = "SIDEKEEPER_ZOOKEEPER_JARS"

//go:embed pom.xml
var pom []byte

// systemJars is where distributions put Java libraries, and systemNames what Debian calls those a server runs on.
var (
	systemJars  = "/usr/share/java"
	systemNames = []string{"zookeeper", "zookeeper-jute", "metrics-core", "snappy-java", "slf4j-api", "slf4j-simple"}
)

// java is the Java virtual machine servers run on: that of JAVA_HOME, else the one on the PATH.
func java() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return exec.LookPath(filepath.Join(home, "bin", "java"))
	}
	path, err := exec.LookPath("java")
	if err != nil {
		return "", errors.New("no Java found to run ZooKeeper on: apt-get install default-jre-headless, or set JAVA_HOME")
	}
	return path, nil
}

// classPath finds the jars a server runs on: those of JarsVariable, else those that Maven gets and that are then kept in
// the user's cache directory, else those of the system's package.
func classPath(ctx context.Context) (string, error) {
	if directory := os.Getenv(JarsVariable); directory != "" {
		return fromDirectory(directory)
	}
	cached, err := fromMaven(ctx)
	if err == nil {
		return cached, nil
	}
	if system, ok := fromSystem(); ok {
		return system, nil
	}
	return "", fmt.Errorf("no ZooKeeper found: %w; "+
		"apt-get install maven (to get %s) or zookeeper, or set %s to a directory of its jars", err, Version, JarsVariable)
}

func fromDirectory(directory string) (string, error) {
	found, _ := filepath.Glob(filepath.Join(directory, "zookeeper*.jar")) // the pattern is well formed
	if len(found) == 0 {
		return "", fmt.Errorf("%s is %s, where there is no zookeeper*.jar", JarsVariable, directory)
	}
	return filepath.Join(directory, "*"), nil
}

func fromSystem() (string, bool) {
	var jars []string
	for _, name := range systemNames {
		jar := filepath.Join(systemJars, name+".jar")
		if _, err := os.Stat(jar); err != nil {
			return "", false
		}
		jars = append(jars, jar)
	}
	return strings.Join(jars, string(os.PathListSeparator)), true
}

// fromMaven returns the class path of the cache, which it fills if need be. Processes that find it empty at the same time
// wait for the one that fills it.
func fromMaven(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	home := filepath.Join(cache, "sidekeeper", "zookeeper-"+Version)
	if isDirectory(home) {
		return filepath.Join(home, "*"), nil
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(home + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if !isDirectory(home) {
		err = download(ctx, home)
	}
	return filepath.Join(home, "*"), err
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// download has Maven put the jars into a directory beside home, which becomes home when it is complete.
func download(ctx context.Context, home string) error {
	maven, err := exec.LookPath("mvn")
	if err != nil {
		return errors.New("no mvn on the PATH")
	}
	work, err := os.MkdirTemp(filepath.Dir(home), "download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	project, jars := filepath.Join(work, "pom.xml"), filepath.Join(work, "jars")
	if err := os.WriteFile(project, pom, 0o644); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, maven, "--batch-mode", "--quiet", "--file", project,
		"dependency:copy-dependencies", "-DoutputDirectory="+jars)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn: %w: %s", err, complaint(output))
	}
	return os.Rename(jars, home)
}

// complaint is the first line in which Maven says what is wrong.
func complaint(output []byte) string {
	for line := range bytes.Lines(output) {
		if text, ok := bytes.CutPrefix(line, []byte("[ERROR] ")); ok {
			return string(bytes.TrimSpace(text))
		}
	}
	return string(bytes.TrimSpace(output))
}
