package doctor

import (
	"slices"
	"strconv"
	"strings"
)

// A family is a kind of contenders that see each other.
type family string

// stranger is the family of children that are no contenders.
const stranger family = ""

// known are the families, by how the names of their nodes end before the number. The first match wins. They are as
// Curator 5, kazoo 2 and go-zookeeper 1 write them.
var known = []struct {
	family
	markers []string
}{
	{"mutexes as of Sidekeeper, Curator and go-zookeeper", []string{"lock-"}},
	{"read/write locks as of Sidekeeper and Curator", []string{"__READ__", "__WRIT__"}},
	{"kazoo's locks", []string{"__lock__", "__rlock__"}},
	{"Curator's leader latches", []string{"-latch-"}},
	{"Curator's semaphores", []string{"-lease-"}},
}

// familyOf says of which family the child with this name is.
func familyOf(name string) family {
	found, _ := parse(name)
	return found
}

// parse takes a child's name apart: its family and the number at its end.
func parse(name string) (family, string) {
	for _, width := range []int{10, 11} { // the server writes %010d, so only large negative numbers take 11
		split := len(name) - width
		if split < 0 {
			break
		}
		number, err := strconv.ParseInt(name[split:], 10, 32)
		if err != nil || name[split] == '+' || width == 11 && number >= 0 {
			continue
		}
		for _, one := range known {
			if slices.ContainsFunc(one.markers, func(marker string) bool { return strings.HasSuffix(name[:split], marker) }) {
				return one.family, name[split:]
			}
		}
	}
	return stranger, ""
}

// sorted puts names by family.
func sorted(names []string) map[family][]string {
	families := map[family][]string{}
	for _, name := range names {
		families[familyOf(name)] = append(families[familyOf(name)], name)
	}
	return families
}
