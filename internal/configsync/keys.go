package configsync

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What a sidecar takes; see sidekeeper.config.v1.
const (
	maxKeyBytes    = 200
	MaxValueBytes  = 1_000_000
	maxOperations  = 100
	maxCommitBytes = 1_000_000 // bytes of keys and values
)

// Entries are values by what their keys are below some prefix; the prefix itself is "".
type entries map[string][]byte

// keyBelow is the key that name stands for below a prefix.
func keyBelow(prefix, name string) string {
	if prefix == "" || name == "" {
		return prefix + name
	}
	return prefix + "/" + name
}

// nameBelow is what a key is below a prefix that it begins with.
func nameBelow(prefix, key string) string {
	return strings.TrimPrefix(strings.TrimPrefix(key, prefix), "/")
}

// compareKeys orders keys segment by segment, so that what lies below a key follows it at once.
func compareKeys(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "/"), strings.Split(b, "/"), cmp.Compare[string])
}

var segmentPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// checkEntry says what a sidecar would refuse, before anything is written.
func checkEntry(key string, value []byte) error {
	if key == "" || len(key) > maxKeyBytes {
		return fmt.Errorf("key %.80q: it must have 1 to %d bytes", key, maxKeyBytes)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "." || segment == ".." || !segmentPattern.MatchString(segment) {
			return fmt.Errorf("key %q: a segment is 1 to 64 letters, digits, . _ or -, and not . or .. alone", key)
		}
	}
	if strings.HasPrefix(key+"/", "zookeeper/") {
		return errors.New("key " + key + ": the first segment cannot be zookeeper")
	}
	if len(value) > MaxValueBytes {
		return fmt.Errorf("key %s: the value has %d bytes, more than %d", key, len(value), MaxValueBytes)
	}
	return nil
}
