package caller

import "github.com/sidekeeper/sidekeeper/test/support/expect"

var (
	same   = expect.Same
	must   = expect.Must
	within = expect.Within
)
