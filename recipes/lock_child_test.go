package recipes

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

const (
	dashed = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	plain  = "f81d4fae7dec11d0a76500a0c91e6bf6"
)

func TestContendersOfEveryFamilyAreRecognised(t *testing.T) {
	for name, want := range map[string]string{
		"_c_" + dashed + "-lock-0000000007":       "exclusive 7",
		"_c_" + dashed + "-__WRIT__0000000007":    "write 7",
		"_c_" + dashed + "-__READ__2147483647":    "read 2147483647",
		"_c_" + plain + "-lock-0000000012":        "exclusive 12",
		plain + "__lock__0000000001":              "exclusive 1",
		plain + "__rlock__0000000001":             "read 1",
		plain + "-lock-0000000003":                "exclusive 3",
		"_c_" + dashed + "-lock--2147483648":      "exclusive -2147483648",
		"_c_" + dashed + "-lock--999999999":       "exclusive -999999999",
		"_c_" + dashed + "-lock--000000001":       "exclusive -1",
		"_c_" + dashed + "-__WRIT__-2147483648":   "write -2147483648",
		plain + "__lock__-2147483647":             "exclusive -2147483647",
		"a-lock-0000000001-__READ__0000000002":    "read 2",
		"lock-0000000009":                         "exclusive 9",
		"_c_" + dashed + "-latch-0000000001":      "exclusive 1",
		"\xff\xfe-lock-0000000009":                "exclusive 9",
		"_c_" + dashed + "-__READ__-__0000000001": "",
		"read-0000000004":                         "read 4",
		"write-0000000005":                        "write 5",
		dashed + "-read-0000000004":               "read 4",
		dashed + "-write--2147483648":             "write -2147483648",
		"lock-72057594037927936-0000000006":       "exclusive 6",
		"lock--72057594037927936-0000000006":      "exclusive 6",
		"x-72057594037927936-0000000007":          "exclusive 7",
		"x--72057594037927936--999999999":         "exclusive -999999999",
		"x-010000000000000a-0000000007":           "exclusive 7",
		"lock-0x10000000000000a-0000000008":       "exclusive 8",
	} {
		got := ""
		if c, ok := parseChild(name); ok {
			got = fmt.Sprintf("%v %d", c.mode, c.sequence)
		}
		if got != want {
			t.Errorf("%q is %q, not %q", name, got, want)
		}
	}
}

func TestWhatIsNoContenderIsNotTakenForOne(t *testing.T) {
	for _, name := range []string{
		"", "x", "_c_x", "_c_", "_c_" + dashed, "lock-", "-lock-", "lock-1", "lock-00000000001", "lock-2147483648",
		"lock-9999999999", "lock--2147483649", "lock-+000000001", "lock-00000000-1", "lock-0x00000001", "lock-000_000_01",
		"lock-٠٠٠٠٠", "0000000001", "-2147483648", "__lock__", "_c_" + dashed + "-latch-1",
		"_c_" + dashed + "-lease-0000000001", "n_0000000001", "thread-0000000001", "rewrite-0000000001",
		"x-0000000001", "x--0000000001", "box-7-0000000001", "x-7-8-0000000001", "x-host-0000000001", "lock-7_0000000001",
		"y-7-0000000001", "clock-7-0000000001", "x-00000000000000000a-0000000001", "read0000000001", "-read0000000001", ".meta", "\xff\xfe", "\x00",
		strings.Repeat("0", 1<<16), strings.Repeat("lock-", 1<<12),
	} {
		if c, ok := parseChild(name); ok {
			t.Errorf("%q was taken for %v", name, c)
		}
	}
}

func FuzzChild(f *testing.F) {
	for _, seed := range []string{
		"", "_c_x", "x", "-lock--2147483648", "_c_" + dashed + "-lock-0000000001", plain + "__rlock__0000000001",
		"__READ__-000000001", "\xff-lock-0000000001", "lock--0000000000",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		c, ok := parseChild(name)
		if !ok {
			return
		}
		rebuilt := fmt.Sprintf("x%s%010d", c.mode.marker(), c.sequence)
		if again, ok := parseChild(rebuilt); !ok || again.mode != c.mode || again.sequence != c.sequence {
			t.Errorf("%q is %v, but %q is %v", name, c, rebuilt, again)
		}
	})
}

func TestEverySequenceNumberIsReadBack(t *testing.T) {
	numbers := []int32{0, 1, -1, 999999999, 1000000000, -999999999, -1000000000, math.MaxInt32, math.MinInt32}
	for _, mode := range []Mode{Exclusive, Read, Write} {
		for _, number := range numbers {
			name := fmt.Sprintf("_c_%s%s%010d", dashed, mode.marker(), number)
			if c, ok := parseChild(name); !ok || c.mode != mode || c.sequence != number {
				t.Errorf("%q is %v, %v", name, c, ok)
			}
		}
	}
}
