package configsync

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// Whatever a file holds, it is refused, or it is entries that are written and read again to the byte, as YAML and as files,
// and that an import makes of whatever is stored.
func FuzzImportedYAML(f *testing.F) {
	for _, text := range []string{
		"a: 1\nb: {c: d, \"\": e}\n",
		"{}", "a/b: x\na: y", "logo: !!binary AP8=", "t: |\n  two\n  lines\n", "t: >-\n  folded\n", "a: &x 1\nb: *x", "<<: {a: 1}", "? [a]\n: b",
		"a: !!float 1\n", "a: 'x\ty'", "\ufeffa: b", "a: \"\\ud800\"", "a:\n  b:\n    c:\n      d: e", "%YAML 1.2\n---\na: b\n...\n",
		"..data: x\n\"%value\": y\n\"%2E.a\": z", strings.Repeat("a: {", 200) + strings.Repeat("}", 200), "a: \"\\x85\\u2028\"", "a: 'x\n\n  y'",
	} {
		f.Add([]byte(text), []byte("a: stored\nz: too\n"))
	}
	f.Fuzz(func(t *testing.T, text, before []byte) {
		read, err := readYAML(bytes.NewReader(text))
		if err != nil {
			return
		}
		var written bytes.Buffer
		if err := read.writeYAML(&written); err != nil {
			t.Fatal(err)
		}
		again, err := readYAML(bytes.NewReader(written.Bytes()))
		if diff := cmp.Diff(read, again); diff != "" || err != nil {
			t.Errorf("%q is written as\n%s%v %s", text, written.Bytes(), err, diff)
		}
		for name, value := range read {
			if checkEntry(keyBelow("shop", name), value) != nil {
				return // nothing of it would be written
			}
		}
		if diff := cmp.Diff(read, asFiles(t, read)); diff != "" {
			t.Errorf("%q as files: %s", text, diff)
		}
		if stored, err := readYAML(bytes.NewReader(before)); err == nil {
			importsInto(t, stored, read)
		}
	})
}

// asFiles are entries as they are read from the files that they become, whose names must differ however they are written.
func asFiles(t *testing.T, written entries) entries {
	t.Helper()
	read := entries{}
	files := written.files()
	for file, value := range files {
		if _, twice := read[nameOf(file)]; twice {
			t.Errorf("two files of %q", nameOf(file))
		}
		read[nameOf(file)] = value
		for above := range files {
			if strings.HasPrefix(file, above+"/") {
				t.Errorf("%q is a file, and a folder of %q", above, file)
			}
		}
		if file == "" || strings.HasPrefix(file, "/") || strings.Contains("/"+file+"/", "/../") || strings.HasPrefix(file, dataLink) {
			t.Errorf("a file called %q", file)
		}
	}
	return read
}

// importsInto fails the test unless the plan to import wanted, with what is not wanted deleted, makes that of stored: in
// steps that the ensemble allows.
func importsInto(t *testing.T, stored, wanted entries) {
	t.Helper()
	var before []sidekeeper.Entry
	now := entries{}
	for name, value := range stored {
		key := keyBelow("shop", name)
		before = append(before, sidekeeper.Entry{Key: key, Value: value})
		now[key] = value
	}
	steps, err := plan("shop", before, wanted, true)
	if err != nil {
		return // a key would be deleted that wanted ones lie below
	}
	for _, step := range steps {
		if step.action == eventPut {
			now[step.key] = step.value
			continue
		}
		delete(now, step.key)
		for key := range now {
			if strings.HasPrefix(key, step.key+"/") {
				t.Errorf("%s is deleted while %s lies below it", step.key, key)
			}
		}
	}
	after := entries{}
	for key, value := range now {
		after[nameBelow("shop", key)] = value
	}
	if diff := cmp.Diff(wanted, after); diff != "" {
		t.Errorf("imported into %q: %s", stored, diff)
	}
}

// A key that the command takes is one that a sidecar takes, and the other way round, as far as one can see from here: it is
// short, and its segments are letters, digits and . _ -.
func FuzzKeys(f *testing.F) {
	for _, key := range []string{
		"a", "a/b", "", "/", "a//b", "..", "a/..", "zookeeper", "zookeeper/a", "a/zookeeper", "ä", "a\nb", "a\n", "%key",
	} {
		f.Add(key, "x")
	}
	f.Fuzz(func(t *testing.T, key, name string) {
		if checkEntry(key, nil) == nil {
			if !utf8.ValidString(key) || strings.ContainsAny(key, " \n\t%\\:*?\"'") || len(key) > maxKeyBytes {
				t.Errorf("%q is taken for a key", key)
			}
			if checkEntry(key+"/"+strings.Repeat("x", maxKeyBytes), nil) == nil {
				t.Errorf("a key of more than %d bytes", maxKeyBytes)
			}
		}
		if below := keyBelow(key, name); checkEntry(below, nil) == nil && !strings.HasPrefix(name, "/") && nameBelow(key, below) != name {
			t.Errorf("%q below %q is %q, and that is called %q there", name, key, below, nameBelow(key, below))
		}
		if sign := compareKeys(key, name); sign != -compareKeys(name, key) || (sign == 0) != (key == name) {
			t.Errorf("%q and %q: %d, %d", key, name, sign, compareKeys(name, key))
		}
	})
}
