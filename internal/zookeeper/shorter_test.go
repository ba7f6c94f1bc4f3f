package zookeeper

import (
	"errors"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

func TestASessionThatIsGrantedLessWhenItComesBackEnds(t *testing.T) {
	for granted, want := range map[time.Duration]error{4 * time.Second: errShortened, 15 * time.Second: nil, 40 * time.Second: nil} {
		bubble.Test(t, func(t *testing.T) {
			server := &babbler{answers: []byte{answerNothing, 0}, regranted: granted}
			client := server.client(t)
			defer client.Close()
			session, err := client.Open(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close(t.Context())
			if _, err := session.Enqueue(t.Context(), "/d", "-lock-", nil); (err == nil) != (want == nil) {
				t.Errorf("granted %v: %v", granted, err)
			}
			if err := session.Err(); !errors.Is(err, want) {
				t.Errorf("granted %v: the session's end is %v, want %v", granted, err, want)
			}
			if left := session.ValidFor(); left > session.Timeout() || want != nil && left != 0 {
				t.Errorf("granted %v: valid for %v", granted, left)
			}
		})
	}
}
