package budget

import (
	"os"
	"strconv"

	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

var (
	same    = expect.Same
	outcome = expect.Outcome
	must    = expect.Must
)

func uid() string { return strconv.Itoa(os.Getuid()) }

// told is what a caller is told of an error.
func told(err error) string {
	if err == nil {
		return outcome(nil)
	}
	answer, _ := service.StatusOf(err)
	return outcome(answer.Err())
}
