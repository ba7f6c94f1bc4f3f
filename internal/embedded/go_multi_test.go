package embedded

import (
	"strings"

	"github.com/go-zookeeper/zk"
)

// multi takes operations with ";" between them and shows each one's result and what the call returned.
func (s *goScript) multi(c *goClient, arguments []string) string {
	var steps []any
	for step := range strings.SplitSeq(strings.Join(arguments, " "), ";") {
		if words := strings.Fields(step); len(words) > 0 {
			steps = append(steps, s.step(words[0], words[1:]))
		}
	}
	results, err := c.Multi(steps...)
	var shown []string
	for _, result := range results {
		shown = append(shown, s.result(result))
	}
	return strings.Join(append(shown, "all: "+answer(err, "ok")), "; ")
}

func (s *goScript) step(verb string, arguments []string) any {
	path := s.show.full(arguments[0])
	switch verb {
	case "create":
		return s.createRequest(arguments, "p")
	case "set":
		return &zk.SetDataRequest{Path: path, Data: data(arguments[1]), Version: number(argument(arguments, 2, "-1"))}
	case "delete":
		return &zk.DeleteRequest{Path: path, Version: number(argument(arguments, 1, "-1"))}
	case "check":
		return &zk.CheckVersionRequest{Path: path, Version: number(argument(arguments, 1, "-1"))}
	}
	return verb // which go-zookeeper refuses
}

func (s *goScript) result(result zk.MultiResponse) string {
	switch {
	case result.Error != nil:
		return result.Error.Error()
	case result.Stat != nil:
		return s.stat(result.Stat)
	case result.String != "":
		return s.show.path(result.String)
	}
	return "ok"
}
