package linear

import (
	"strings"
	"testing"
	"time"
)

func put(value string, version int32) (Step, Effect) {
	return Step{Key: "k", Verb: Put, Value: value}, Effect{Version: version}
}

func get(value string, version int32) (Step, Effect) {
	return Step{Key: "k"}, Effect{Value: value, Version: version}
}

func deleted(effect Effect) (Step, Effect) { return Step{Key: "k", Verb: Delete}, effect }

func demanding(demand Demand, s Step, e Effect) (Step, Effect) {
	s.Demand = demand
	return s, e
}

func TestTheCheckRefusesWhatCannotBe(t *testing.T) {
	from := func(call, answer int64) func(Step, Effect) Operation {
		return func(s Step, e Effect) Operation { return Operation{Step: s, Effect: e, Call: call, Return: answer} }
	}
	lost := func(call int64, s Step) Operation {
		return Operation{Step: s, Effect: Effect{Unknown: true}, Call: call, Return: Never}
	}
	putB, _ := put("b", 2)
	refused := Effect{Refused: true}
	for _, c := range []struct {
		name    string
		history History
		want    Result
	}{
		{"nothing at all", nil, Linearizable},
		{"a read of what was put", History{from(1, 2)(put("a", 1)), from(3, 4)(get("a", 1))}, Linearizable},
		{"a read of nothing", History{from(1, 2)(get("", 0))}, Linearizable},
		{"a read of what nobody put", History{from(1, 2)(put("a", 1)), from(3, 4)(get("b", 1))}, Illegal},
		{
			"an old read after a newer one",
			History{from(1, 2)(put("a", 1)), from(3, 6)(put("b", 2)), from(4, 5)(get("b", 2)), from(7, 8)(get("a", 1))},
			Illegal,
		},
		{"an old read while the put goes on", History{from(1, 2)(put("a", 1)), from(3, 6)(put("b", 2)), from(4, 5)(get("a", 1))}, Linearizable},
		{
			"a lost put that was done late",
			History{from(1, 2)(put("a", 1)), lost(3, putB), from(5, 6)(get("a", 1)), from(7, 8)(get("b", 2))},
			Linearizable,
		},
		{"a lost put that was never done", History{from(1, 2)(put("a", 1)), lost(3, putB), from(5, 6)(get("a", 1))}, Linearizable},
		{
			"a lost put that was undone",
			History{from(1, 2)(put("a", 1)), lost(3, putB), from(5, 6)(get("b", 2)), from(7, 8)(get("a", 1))},
			Illegal,
		},
		{"two puts that made the same version", History{from(1, 2)(put("a", 1)), from(3, 4)(put("b", 1))}, Illegal},
		{
			"a put that demands the version there is",
			History{from(1, 2)(put("a", 1)), from(3, 4)(demanding(Demand{Version: 1}, Step{Key: "k", Verb: Put, Value: "b"}, Effect{Version: 2}))},
			Linearizable,
		},
		{
			"a put that demands another version and is done",
			History{from(1, 2)(put("a", 1)), from(3, 4)(demanding(Demand{Version: 7}, Step{Key: "k", Verb: Put, Value: "b"}, Effect{Version: 2}))},
			Illegal,
		},
		{
			"a put that demands another version and is refused",
			History{from(1, 2)(put("a", 1)), from(3, 4)(demanding(Demand{Version: 7}, Step{Key: "k", Verb: Put, Value: "b"}, refused))},
			Linearizable,
		},
		{
			"a put that demands that there is nothing, when there is something",
			History{from(1, 2)(put("a", 1)), from(3, 4)(demanding(Demand{Absence: true}, Step{Key: "k", Verb: Put}, Effect{Version: 2}))},
			Illegal,
		},
		{
			"a put that demands that there is nothing, and is refused when there is",
			History{from(1, 2)(put("a", 1)), from(3, 4)(demanding(Demand{Absence: true}, Step{Key: "k", Verb: Put}, refused))},
			Linearizable,
		},
		{"a put that is refused for no reason", History{from(1, 2)(Step{Key: "k", Verb: Put}, refused)}, Illegal},
		{"a key that begins anew", History{from(1, 2)(put("a", 1)), from(3, 4)(deleted(Effect{})), from(5, 6)(put("b", 1))}, Linearizable},
		{"a deletion of nothing", History{from(1, 2)(deleted(Effect{}))}, Illegal},
		{"a deletion that nothing was there for", History{from(1, 2)(deleted(refused))}, Linearizable},
		{"a deletion that is refused though the key is there", History{from(1, 2)(put("a", 1)), from(3, 4)(deleted(refused))}, Illegal},
	} {
		got, unexplained := c.history.Check(time.Minute)
		if got != c.want {
			t.Errorf("%s is %s, not %s", c.name, got, c.want)
		}
		if (got == Illegal) != (len(unexplained) == 1 && unexplained[0].String() != "") {
			t.Errorf("%s: %q is not explained", c.name, unexplained)
		}
	}
}

func TestKeysAreCheckedOneByOne(t *testing.T) {
	good := Operation{Step: Step{Key: "a", Verb: Put, Value: "x"}, Effect: Effect{Version: 1}, Call: 1, Return: 2}
	bad := Operation{Step: Step{Key: "b"}, Effect: Effect{Value: "y", Version: 1}, Call: 1, Return: 2}
	result, unexplained := History{good, bad}.Check(time.Minute)
	if result != Illegal || len(unexplained) != 1 || !strings.Contains(unexplained[0].String(), "Key:b") {
		t.Errorf("%s: %s", result, unexplained)
	}
}

func TestACheckThatTakesTooLongIsNoProof(t *testing.T) {
	var h History
	for i := range 60 {
		value := string(rune('a' + i))
		h = append(h, Operation{Step: Step{Key: "k", Verb: Put, Value: value}, Effect: Effect{Unknown: true}, Call: 1, Return: Never})
	}
	h = append(h, Operation{Step: Step{Key: "k"}, Effect: Effect{Value: "never", Version: 50}, Call: 2, Return: 3})
	if result, unexplained := h.Check(time.Millisecond); result != Unknown || len(unexplained) != 1 {
		t.Errorf("%s", result)
	}
}
