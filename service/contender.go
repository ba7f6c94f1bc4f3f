package service

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// contenderOnWire is what contenders for locks and for permits have in common.
func contenderOnWire(contender recipes.Contender) *holdv1.Contender {
	return &holdv1.Contender{
		Identity: contender.Identity, Owner: contender.Owner, Metadata: contender.Metadata, Age: durationpb.New(contender.Age),
		Foreign: contender.Foreign, RevocationRequested: contender.Revoked,
	}
}

// A contendedView is a view of what is contended for.
type contendedView interface {
	GetHolders() []*holdv1.Contender
	GetWaiters() []*holdv1.Contender
}

// ageless takes the contenders' ages out of a view, which tells it apart from others.
func ageless[V contendedView](view V) V {
	for _, list := range [][]*holdv1.Contender{view.GetHolders(), view.GetWaiters()} {
		for _, contender := range list {
			contender.Age = nil
		}
	}
	return view
}

// aged adds the time that has passed since a view was read to the contenders' ages.
func aged[V contendedView](view V, passed time.Duration) V {
	for _, list := range [][]*holdv1.Contender{view.GetHolders(), view.GetWaiters()} {
		for _, contender := range list {
			contender.Age = durationpb.New(contender.GetAge().AsDuration() + passed)
		}
	}
	return view
}
