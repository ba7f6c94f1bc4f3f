package peers

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

const kazooVersion = "2.11.0"

// python is the interpreter of a virtual environment with kazoo, in the user's cache directory.
var python = sync.OnceValues(func() (string, error) {
	home, err := component("kazoo-"+kazooVersion, func(home string) error {
		if _, err := exec.LookPath("python3"); err != nil {
			return errors.New("kazoo needs Python: apt-get install python3-venv")
		}
		if err := runIn(home, "python3", "-m", "venv", "--clear", "."); err != nil {
			return fmt.Errorf("%w (apt-get install python3-venv)", err)
		}
		return runIn(home, filepath.Join(home, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "kazoo=="+kazooVersion)
	})
	return filepath.Join(home, "bin", "python"), err
})

// javaClasses is the class path of the Java program with Curator and ZooKeeper's command line, built in the user's
// cache directory anew when its sources have changed.
var javaClasses = sync.OnceValues(func() (string, error) {
	sources := filepath.Join("testdata", "curator")
	version, err := digest(sources)
	if err != nil {
		return "", err
	}
	home, err := component("curator-"+version, func(home string) error {
		for _, program := range []string{"javac", "mvn"} {
			if _, err := exec.LookPath(program); err != nil {
				return fmt.Errorf("curator needs %s: apt-get install default-jdk-headless maven", program)
			}
		}
		if err := os.CopyFS(home, os.DirFS(sources)); err != nil {
			return err
		}
		return runIn(home, "mvn", "--batch-mode", "--quiet", "compile", "dependency:copy-dependencies")
	})
	target := filepath.Join(home, "target")
	return filepath.Join(target, "classes") + string(os.PathListSeparator) + filepath.Join(target, "jars", "*"), err
})

// recipesJar is where Debian puts the lock that comes with ZooKeeper, which is on Maven Central in no version.
const recipesJar = "usr/share/java/zookeeper-recipes-lock.jar"

// writeLockClasses is the class path of javaClasses with ZooKeeper's WriteLock, from the package that Debian makes of it.
var writeLockClasses = sync.OnceValues(func() (string, error) {
	classes, err := javaClasses()
	if err != nil {
		return "", err
	}
	sources := filepath.Join("testdata", "zookeeper")
	version, err := digest(sources)
	if err != nil {
		return "", err
	}
	home, err := component("write-lock-"+version, func(home string) error {
		if err := copyRecipesJar(home); err != nil {
			return fmt.Errorf("ZooKeeper's WriteLock: %w (apt-get install libzookeeper-java)", err)
		}
		source, err := filepath.Abs(filepath.Join(sources, "SharedWriteLock.java"))
		if err != nil {
			return err
		}
		return runIn(home, "javac", "-d", ".", "-cp", classes+string(os.PathListSeparator)+filepath.Base(recipesJar), source)
	})
	path := []string{home, filepath.Join(home, filepath.Base(recipesJar)), classes}
	return strings.Join(path, string(os.PathListSeparator)), err
})

// copyRecipesJar takes the one that is installed, or that of the package, which is not installed for this.
func copyRecipesJar(home string) error {
	installed := "/" + recipesJar
	if _, err := os.Stat(installed); err != nil {
		if err := runIn(home, "apt-get", "download", "-qq", "libzookeeper-java"); err != nil {
			return err
		}
		packages, err := filepath.Glob(filepath.Join(home, "*.deb"))
		if err != nil || len(packages) != 1 {
			return fmt.Errorf("%d packages: %w", len(packages), err)
		}
		if err := runIn(home, "dpkg", "-x", packages[0], "."); err != nil {
			return err
		}
		installed = filepath.Join(home, recipesJar)
	}
	jar, err := os.ReadFile(installed)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, filepath.Base(recipesJar)), jar, 0o600)
}

// component returns a directory of the user's cache, filled if it is not there yet. Processes that miss it at the
// same time wait for the one that makes it; one that was made in part is made anew.
func component(name string, fill func(home string) error) (home string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	home = filepath.Join(cache, "sidekeeper", name)
	complete := filepath.Join(home, "complete")
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(home + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(complete); err == nil {
		return home, nil
	}
	if err := errors.Join(os.RemoveAll(home), os.Mkdir(home, 0o755)); err != nil {
		return "", err
	}
	if err := fill(home); err != nil {
		return "", err
	}
	return home, os.WriteFile(complete, nil, 0o600)
}

func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(file.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return func() { file.Close() }, err
		}
	}
}

// runIn runs a program in a directory.
func runIn(directory, program string, arguments ...string) error {
	command := exec.Command(program, arguments...)
	command.Dir = directory
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, output)
	}
	return nil
}

// digest tells versions of a directory's files apart.
func digest(directory string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintln(sum, path, len(text))
		_, _ = sum.Write(text) // never fails: see hash.Hash
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:8]), err
}

// pythonCommand runs a script of ours with the arguments.
func pythonCommand(t *testing.T, script string, arguments ...string) *exec.Cmd {
	t.Helper()
	interpreter, err := python()
	must(t, err)
	return exec.Command(interpreter, append([]string{filepath.Join("testdata", "kazoo", script)}, arguments...)...)
}

// javaCommand runs a main class with the arguments.
func javaCommand(t *testing.T, main string, arguments ...string) *exec.Cmd {
	t.Helper()
	classes, err := javaClasses()
	must(t, err)
	return javaWith(classes, main, arguments...)
}

// javaWith runs what the arguments name, which may begin with options.
func javaWith(classes, first string, arguments ...string) *exec.Cmd {
	return exec.Command("java", append([]string{
		"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Dzookeeper.sasl.client=false",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classes, first,
	}, arguments...)...)
}
