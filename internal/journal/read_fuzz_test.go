package journal

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzRecords gives the reader of records any bytes. What it believes names a session, is of this boot and scope, and is what another process
// would write of it.
func FuzzRecords(f *testing.F) {
	j := &Journal{boot: "this boot", scope: scope}
	form := form{Version: currentVersion, Boot: j.boot, Scope: j.scope, Key: "a", Record: record(1)}
	whole, err := json.Marshal(form)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(sealed(whole))
	f.Add(sealed([]byte(strings.Replace(string(whole), `"version":1`, `"version":1,"session":null`, 1))))
	f.Add(sealed([]byte("{}")))
	f.Add([]byte(sumField))
	f.Add([]byte(`"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := j.read(data, "a")
		if err != nil {
			// A fuzzer does not find a checksum by itself: what it has found is given the right one.
			if json.Valid(data) && strings.HasPrefix(string(data), "{") && strings.HasSuffix(string(data), "}") {
				found, err = j.read(sealed(data), "a")
			}
			if err != nil {
				return
			}
		}
		if found.Session.ID == 0 || len(found.Session.Password) != passwordBytes || found.Session.Timeout <= 0 {
			t.Fatalf("%+v is believed", found)
		}
		form.Record = found
		again, err := json.Marshal(form)
		if err != nil {
			return // of a year that JSON has no form for
		}
		same, err := j.read(sealed(again), "a")
		if diff := cmp.Diff(found, same, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}
