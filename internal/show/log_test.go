package show

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestALineOfTheLogCannotTurnItself(t *testing.T) {
	name := "orders/\u202edegnahcxe\u2066 é"
	line, err := json.Marshal(map[string]string{"name": name})
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	if n, err := LogWriter(&written).Write(line); n != len(line) || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if got, want := written.String(), `{"name":"orders/\u202edegnahcxe\u2066 é"}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var read map[string]string
	if err := json.Unmarshal(written.Bytes(), &read); err != nil || read["name"] != name {
		t.Errorf("read back %q, %v", read["name"], err)
	}
}
