package doctor

import (
	"regexp"
	"strconv"
)

// A family is a kind of contenders that see each other.
type family string

// stranger is the family of children that are no contenders.
const stranger family = ""

// known are the families, by how the names of their nodes end before the number. The first match wins. They are as
// Curator 5, kazoo 2, go-zookeeper 1, ZooKeeper's WriteLock and its manual write them.
var known = []struct {
	family
	before *regexp.Regexp
}{
	{"mutexes as of Sidekeeper, Curator, go-zookeeper and WriteLock", regexp.MustCompile(`lock-$|^(lock|x)-(-?[0-9]+|(0x)?[0-9a-f]{1,16})-$`)},
	{"read/write locks as of Sidekeeper and Curator", regexp.MustCompile(`(__READ__|__WRIT__)$`)},
	{"read/write locks as of ZooKeeper's manual", regexp.MustCompile(`(^|-)(read|write)-$`)},
	{"kazoo's locks", regexp.MustCompile(`(__lock__|__rlock__)$`)},
	{"leader latches as of Sidekeeper and Curator", regexp.MustCompile(`-latch-$`)},
	{"Curator's semaphores", regexp.MustCompile(`-lease-$`)},
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
			if one.before.MatchString(name[:split]) {
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
