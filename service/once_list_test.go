package service_test

import (
	"strings"
	"testing"

	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestARecordOfAnotherProgramIsListedAsSuch(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.ensemble.Before(func(of standin.Operation) error {
			if strings.HasPrefix(of.Path, "/secret/") {
				return recipes.ErrDenied
			}
			return nil
		})
		first := s.works(s.callers, tonight())
		first.sees("begun 1")
		const place = "/secret/_c_00000000-0000-0000-0000-000000000000-lock-0000000001"
		for key, data := range map[string]string{"a": "{}", "b": `{"outcome":"BEGUN","attempt":1,"token":1,"place":"` + place + `"}`} {
			_, err := s.ensemble.Commit(s.context(), recipes.Create("/sidekeeper/once/nightly/"+key, []byte(data)))
			s.must(err)
		}
		list, err := s.once.List(s.context(), &oncev1.ListRequest{Name: "nightly"})
		s.must(err)
		var told []string
		for _, of := range list.GetRecords() {
			told = append(told, of.GetKey()+" "+strings.TrimPrefix(of.GetState().String(), "STATE_"))
			if of.GetAt().GetSeconds() <= 0 {
				t.Errorf("%s has no time", of.GetKey())
			}
		}
		same(t, "records", strings.Join(told, ", "), "a MALFORMED, b MALFORMED, k RUNNING")
		first.cancel()
	})
}
