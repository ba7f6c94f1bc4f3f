package recipes

import (
	"cmp"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Revocation is what is asked of a contender. Holders count a grace from when they first see it, and the earliest end that
// they have counted stands: then asking again never prolongs one.
type Revocation struct {
	Asked  bool
	By     string         // who asked, if that is known
	Reason string         // in the words of who asked
	Grace  *time.Duration // until the hold is ended by force; nil if it never is
	Break  bool           // end the hold now
	To     string         // which candidate shall lead instead: of an election, who leads is to let go, and who waits is to step back
}

// What others write into a holder's node to ask for the lock.
const (
	manualMark  = "unlock"     // the recipe in ZooKeeper's manual
	curatorMark = "__REVOKE__" // Curator's Revoker
)

// maxForeignOwner bounds, in bytes, what is shown of what a foreign contender wrote about itself.
const maxForeignOwner = 128

// maxAbout is longer than what any caller of ours says about itself: what is longer is not shown, since it would make a view
// that is too large to be sent.
const maxAbout = 16 << 10

// currentForm numbers the form that we write; later ones must remain readable as this one.
const currentForm = 1

// aboutForm begins the data of our nodes: short JSON, since others take it for text, as kazoo does with every contender's data. Its
// number tells it from the JSON of others.
type aboutForm struct {
	Form     int               `json:"sidekeeper"`
	Identity string            `json:"identity,omitempty"`
	Owner    string            `json:"owner,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Timeout  int64             `json:"timeout_ms,omitempty"` // of the session
	Request  uint64            `json:"request,omitempty"`    // on the stream of its lease, by which a later process knows it again
	Value    *string           `json:"value,omitempty"`      // of a candidate, which can step back
	Reserved *Reserved         `json:"reserved,omitempty"`   // of a claim
}

// form is what a contender or a member says about itself, as its node holds it.
func (a About) form() aboutForm {
	return aboutForm{
		Form: currentForm, Identity: a.Identity, Owner: a.Owner, Metadata: a.Metadata, Timeout: a.Timeout.Milliseconds(), Request: a.Request,
		Value: a.Value, Reserved: a.Reserved,
	}
}

func (f aboutForm) about() About {
	return About{
		Identity: f.Identity, Owner: f.Owner, Metadata: f.Metadata, Timeout: toldTimeout(f.Timeout), Request: f.Request, Value: f.Value,
		Reserved: f.Reserved,
	}
}

func (a About) encode() []byte { return encode(a.form()) }

func encode(form any) []byte {
	data, err := json.Marshal(form)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return data
}

// placeForm is the data of our contenders' nodes.
type placeForm struct {
	aboutForm

	Revoke *mark `json:"revoke,omitempty"`
}

// mark is a revocation in our form.
type mark struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	Grace  *int64 `json:"grace_ms,omitempty"`
	Break  bool   `json:"break,omitempty"`
	To     string `json:"to,omitempty"`
}

// decode reads a node's data, if it is in our form.
func decode(data []byte) (f placeForm, ours bool) {
	if err := json.Unmarshal(data, &f); err != nil || f.Form < currentForm {
		return placeForm{}, false
	}
	if f.Reserved != nil && !isTime(f.Reserved.Until) {
		f.Reserved = nil
	}
	if f.Reserved != nil {
		f.Reserved.Until = f.Reserved.Until.UTC()
	}
	return f, true
}

func isOurs(data []byte) bool {
	_, ours := decode(data)
	return ours
}

// revocationIn reads what is asked of a contender in its node's data, in any of the three forms.
func revocationIn(data []byte) Revocation {
	if text := string(data); text == manualMark || text == curatorMark {
		return Revocation{Asked: true}
	}
	f, ours := decode(data)
	if !ours || f.Revoke == nil {
		return Revocation{}
	}
	asked := Revocation{Asked: true, By: f.Revoke.By, Reason: f.Revoke.Reason, Break: f.Revoke.Break, To: f.Revoke.To}
	if f.Revoke.Grace != nil {
		milliseconds := max(0, min(*f.Revoke.Grace, maxGrace.Milliseconds()))
		asked.Grace = new(time.Duration(milliseconds) * time.Millisecond)
	}
	return asked
}

// maxGrace bounds a grace that an operator wrote by hand.
const maxGrace = 24 * time.Hour

// mark writes a revocation into a node's data, as its holder will understand it: in Curator's form if the data is not
// ours. Where a plain mark stands already, a Curator holder has been asked, and the holder may still be ours, its data
// overwritten; so what only our form can say is then said in our form. A mark never makes what is asked later or less.
func (r Revocation) mark(data []byte) []byte {
	before := revocationIn(data)
	f, ours := decode(data)
	switch {
	case !ours && !before.Asked:
		return []byte(curatorMark)
	case !ours && !r.Break && r.Grace == nil:
		return data
	}
	f.Form = currentForm
	f.Revoke = &mark{By: r.By, Reason: r.Reason, Break: r.Break || before.Break, To: cmp.Or(r.To, before.To)}
	if grace := sooner(r.Grace, before.Grace); grace != nil {
		f.Revoke.Grace = new(grace.Milliseconds())
	}
	return encode(f)
}

// sooner is the shorter of two graces; none is the longest.
func sooner(a, b *time.Duration) *time.Duration {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// size is how many bytes it has.
func (a About) size() int {
	size := len(a.Identity) + len(a.Owner)
	for key, value := range a.Metadata {
		size += len(key) + len(value)
	}
	if a.Value != nil {
		size += len(*a.Value)
	}
	if a.Reserved != nil {
		size += len(a.Reserved.Reason)
	}
	return size
}

// sizeInMessage is about how many bytes who says this takes in a message.
func (a About) sizeInMessage() int { return 64 + a.size() + 8*len(a.Metadata) }

// aboutIn reads what a contender says about itself: foreign if it did not say so in our form.
func aboutIn(data []byte) (about About, foreign bool) {
	if f, ours := decode(data); ours {
		about := f.about()
		if about.size() > maxAbout {
			about.Identity, about.Owner, about.Metadata, about.Value, about.Reserved = "", "", nil, nil, nil
		}
		return about, false
	}
	if !utf8.Valid(data) || revocationIn(data).Asked {
		return About{}, true
	}
	return About{Owner: clipped(string(data), maxForeignOwner)}, true
}
